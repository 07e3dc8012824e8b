"""One page at once: from the cache if it is fresh enough, else a worker fetches it while the caller waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from silkline.api import submission
from silkline.api.answer_models import Answer, FetchedPage, add_route
from silkline.api.bodies import JsonBodyRoute
from silkline.api.caller_limit import caller_of
from silkline.api.caller_turns import GIVE_BACK, CallerTurns, unless_gone
from silkline.api.events import Hub
from silkline.api.private_addresses import explained
from silkline.api.problems import Problem
from silkline.api.routes.jobs import IdempotencyKey, store_once, view
from silkline.api.submission import FetchRequest
from silkline.config import Settings
from silkline.kinds.registry import is_external
from silkline.model.database import Database, Transaction
from silkline.model.job import ENDED, Job, NewJob
from silkline.store import jobs, page_cache, results
from silkline.store.job_view import JobView
from silkline.store.results import Result
from silkline.store.same_request import is_same_request
from silkline.store.url_view import result_view

OnePage = Annotated[
    FetchRequest, Body(openapi_examples={"page": {"value": {"url": "https://example.com/", "max_age": 3600}}})
]


class WhenFetched(Answer[Any]):
    """The answer of a request that waits for its page.

    It waits after its route has ended: until then the framework keeps the parsed body, which may have a megabyte.
    """

    def __init__(self, wait: Callable[[Scope, Receive], Awaitable[Response | None]]) -> None:
        super().__init__(None)
        self._wait = wait

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._wait(scope, receive)
        if answer is not None:
            await answer(scope, receive, send)


class Patience(BaseModel):
    model_config = ConfigDict(extra="forbid")

    timeout: float = Field(30, ge=0, le=60, description="Seconds to wait. After that, the answer is 202 with the job.")


class FetchRoutes:
    def __init__(self, database: Database, settings: Settings, hub: Hub, turns: CallerTurns) -> None:
        self._database = database
        self._turns = turns
        self._settings = settings
        self._hub = hub
        self.router = APIRouter(prefix="/v1", tags=["pages"], route_class=JsonBodyRoute)
        add_route(
            self.router,
            "POST",
            "/fetch",
            self.fetch,
            "Fetch one page",
            *("too-large", "unsupported-media-type", "cross-site", "fetch-failed", "disk-full", "too-many"),
            "dedupe-key-in-use",
            s200="The page.",
            s202="The page is not ready yet. This job fetches it.",
        )

    async def fetch(
        self, request: Request, body: OnePage, query: Annotated[Patience, Query()], key: IdempotencyKey = None
    ) -> Answer[FetchedPage] | Answer[JobView]:
        """The body has the fields of a `page` job with one `url`. `max_age`: accept a stored page of this age (s)."""
        # It has a turn already (`WriteLimit`), before its body was parsed.
        found = await run_in_threadpool(self._cached_or_stored, request, body, key)
        if not isinstance(found, str):
            return found
        return WhenFetched(partial(self._wait, found, query.timeout))

    async def _wait(self, id: str, seconds: float, scope: Scope, receive: Receive) -> Response | None:
        """The answer when the page is there, or after these seconds. None: the client went away."""
        caller = caller_of(scope)
        scope[GIVE_BACK]()

        async def outcome() -> Response:
            await self._hub.settled(id, seconds, caller)
            async with self._turns.turn(caller):
                return await run_in_threadpool(self._outcome, id)

        return await unless_gone(outcome(), receive)

    def _cached_or_stored(self, request: Request, body: FetchRequest, key: str | None) -> Answer[FetchedPage] | str:
        """A stored page, or the id of the job that fetches it."""
        new = self._read(body)
        if found := self._cached(new):
            return Answer(FetchedPage(found[0], result_view(found[1]), cached=True))
        self._hub.admit(request.scope)  # before the job is stored: a request that is refused has no job
        return self._store(request, new, key, body)

    def _read(self, body: FetchRequest) -> NewJob:
        if "urls" in (body.model_extra or {}):
            raise Problem("invalid", "fetch accepts one url; post a page job for several URLs")
        return submission.new_job(body, self._settings)

    def _cached(self, new: NewJob) -> tuple[JobView, Result] | None:
        """A stored page that may answer for this request, and its job."""
        found = page_cache.fresh(self._database, new.request_url or "", new.payload, is_external=is_external)
        return (view(self._database, found[0]), found[1]) if found else None

    def _store(self, request: Request, new: NewJob, key: str | None, body: FetchRequest) -> str:
        if key is None:
            id = jobs.enqueue(self._database, new)[0].id
        else:
            # Refused before the key is stored, so that the same key works when the other job has ended.
            id = store_once(self._database, new, request, key, body, partial(_refuse_other, new)).job_id
        _refuse_other(new, self._database, id)
        return id

    def _outcome(self, id: str) -> Answer[FetchedPage] | Answer[JobView]:
        job = jobs.outline(self._database, id)
        found = results.page(self._database, id, wanted=1)
        if found and not found[0].success:
            raise _failure(found[0], self._settings)
        if found:
            return Answer(FetchedPage(view(self._database, job), result_view(found[0]), cached=False))
        if job.status in ENDED:
            raise Problem("fetch-failed", explained(job.exit_reason, _why(job), self._settings))
        return Answer(view(self._database, job), 202, {"Location": f"/v1/jobs/{id}"})


def _refuse_other(new: NewJob, database: Database | Transaction, id: str) -> None:
    """Refuse a job with the dedupe key of this request that is another request."""
    if new.dedupe_key is not None and not is_same_request(database, id, new):
        raise Problem(
            "dedupe-key-in-use",
            f"job {id} has this dedupe_key and is another request, so its page would be the wrong one. "
            "Use another dedupe_key, or none",
            headers={"Location": f"/v1/jobs/{id}"},
        )


def _failure(result: Result, settings: Settings) -> Problem:
    """The problem of a failed page: its URL, the reason, and whether a retry may succeed. A header names the job."""
    reason, detail = result.metadata.get("error") or "unknown", result.metadata.get("detail")
    text = f"{result.original_url or result.final_url}: {reason}" + (f" ({detail})" if detail else "")
    text = explained(reason, text, settings)
    again = bool(result.metadata.get("retryable"))
    return Problem("fetch-failed", text, headers={"Location": f"/v1/jobs/{result.job_id}"}, retryable=again)


def _why(job: Job) -> str:
    return job.error_message or job.exit_reason or f"the job is {job.status}"

"""Jobs: submit, list, get, wait for, pause, resume, stop, cancel, retry and remove."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from silkline.api import submission
from silkline.api.answer_models import Answer, ListPage, add_route, problems, to_json
from silkline.api.bodies import JsonBodyRoute
from silkline.api.caller_limit import caller_of
from silkline.api.caller_turns import CallerTurns, unless_gone
from silkline.api.events import Hub
from silkline.api.lists import LOOKING, PAGE_BYTES
from silkline.api.long_answers import LongAnswers
from silkline.api.problems import Problem
from silkline.api.remove import remove
from silkline.api.request_body import RequestBody
from silkline.api.requeue import requeue
from silkline.api.submission import JobRequest
from silkline.config import Settings
from silkline.model.database import Database, Transaction
from silkline.model.job import Job, NewJob, Status, Verb
from silkline.model.ledger import Counts
from silkline.model.spec import CrawlSizes
from silkline.runner.job_commands import ask
from silkline.store import idempotency, jobs, urls, workers
from silkline.store.job_view import JobView, job_view
from silkline.store.usage_view import usage_of_job

KEY_HELP = "A POST with the same key and body within 24 hours gets the first answer again."
ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# No length in a pattern: the server would need 0.1 s to compile `\w{1,100}` at its start.
NAME = r"^[\w.-]+$"
LONGEST_NAME = 100
FIRST, AT_ONCE = 10, 50  # jobs of a list that one statement reads, at first and at most: one may have 300 KB
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255, description=KEY_HELP)
]


class JobListQuery(BaseModel):
    """The query of a list of jobs."""

    model_config = ConfigDict(extra="forbid")

    status: Status | None = None
    kind: str | None = Field(None, max_length=LONGEST_NAME, pattern=NAME)
    q: str | None = Field(None, max_length=500, description="Part of the URL.")
    limit: int = Field(50, ge=1, le=500)
    cursor: str = Field(jobs.LAST_ID, pattern=f"^{ID}$", description="`next_cursor` of the page before.")


class WaitQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    wait: float = Field(0, ge=0, le=60, description="Seconds to wait for the job to end or pause.")


def _failure(reason: Any) -> Any:
    if reason is not None and (not isinstance(reason, str) or not 0 < len(reason) <= 200 or "\x00" in reason):
        raise ValueError("must be the text of a failure, such as timeout")
    return reason


class NoFields(RequestBody):
    """An empty object."""


class SizesBody(CrawlSizes, RequestBody):
    """The sizes that a crawl goes on with."""


class RetryBody(SizesBody):
    """Either the reason of the failures to retry, or new sizes of the crawl."""

    reason: Annotated[str | None, BeforeValidator(_failure)] = Field(None, min_length=1, max_length=200)


PostedJob = Annotated[
    JobRequest,
    Body(
        openapi_examples={
            "site": {"summary": "A site", "value": {"kind": "site", "url": "https://example.com/", "limit": 200}},
            "page": {"summary": "One page", "value": {"kind": "page", "url": "https://example.com/about"}},
        }
    ),
]
NewSizes = Annotated[SizesBody, Body(openapi_examples={"larger": {"value": {"fetchers": 4, "parsers": 2}}})]
RetriedUrls = Annotated[RetryBody, Body(openapi_examples={"timeouts": {"value": {"reason": "timeout"}}})]
# For requests without a body.
NO_FIELDS = NoFields()
NO_SIZES = SizesBody.model_validate({})
NO_REASON = RetryBody.model_validate({})


def find(database: Database, query: JobListQuery, before: str, wanted: int) -> list[Job]:
    """The next jobs below a cursor."""
    more = {"before": before, "wanted": wanted, "status": query.status, "kind": query.kind}
    if query.q:
        return jobs.search(database, query.q, **more)  # type: ignore[arg-type]
    return jobs.page(database, **more)  # type: ignore[arg-type]


def listed(
    database: Database, query: JobListQuery, stale_after: float, clock: Callable[[], float] = time.monotonic
) -> tuple[list[JobView], str | None]:
    """A page of jobs as views, and the cursor of the next. It ends early when it gets large, or when looking for its
    jobs took long."""
    shown: list[JobView] = []
    size, step, cursor, give_up = 0, FIRST, query.cursor, clock() + LOOKING
    while True:
        asked = min(step, query.limit - len(shown))
        found = find(database, query, cursor, asked + 1)
        for each in views(database, found[:asked], stale_after):
            more = len(to_json(each))
            if shown and size + more > PAGE_BYTES:
                return shown, cursor
            shown.append(each)
            size, cursor = size + more, each.id
        if len(found) <= asked:
            return shown, None
        if len(shown) == query.limit or clock() >= give_up:
            return shown, cursor
        step = min(AT_ONCE, step * 2)


def views(database: Database, found: list[Job], stale_after: float) -> list[JobView]:
    """Jobs of a list as views."""
    counts, now = urls.counts_of(database, [job.id for job in found]), database.now()
    waits = any(job.status is Status.QUEUED for job in found)
    alive = workers.alive(database, stale_after) if waits else None
    return [job_view(job, counts.get(job.id, Counts()), now, alive) for job in found]


def view(database: Database, job: Job, stale_after: float | None = None) -> JobView:
    """The job with its counts. With `stale_after`, the message of a queued job says what it waits for."""
    waits = job.status is Status.QUEUED
    alive = workers.alive(database, stale_after) if waits and stale_after is not None else None
    counts = urls.counts(database, job.id)
    return job_view(job, counts, database.now(), alive, usage_of_job(database, job, counts.live))


def store_once(
    database: Database,
    new: NewJob,
    request: Request,
    key: str,
    body: JobRequest,
    check: Callable[[Transaction, str], None] = lambda transaction, id: None,
) -> idempotency.StoredAnswer:
    """Store a job under an idempotency key. Each caller has its own keys. Another request with the key is refused.

    `check` may refuse an earlier job with the same dedupe key. Then nothing is stored.
    """

    def first_answer(job: Job, fresh: bool) -> str:
        shown = job_view(job, Counts(), database.now())
        return to_json({"status": 201 if fresh else 200, "body": shown}).decode()

    asked = json.dumps([request.url.path, body.model_dump(mode="json", exclude_unset=True)], sort_keys=True)
    stored = idempotency.enqueue_once(
        database,
        new,
        key=hashlib.sha256(f"{request.scope['caller'].id}\n{key}".encode()).hexdigest(),
        fingerprint=hashlib.sha256(asked.encode()).hexdigest(),
        answer=first_answer,
        check=check,
    )
    if stored.fingerprint != hashlib.sha256(asked.encode()).hexdigest():
        raise Problem("key-reused", "another request with another body or path used this Idempotency-Key")
    return stored


class JobRoutes:
    def __init__(
        self, database: Database, settings: Settings, hub: Hub, turns: CallerTurns, long_answers: LongAnswers
    ) -> None:
        self._database = database
        self._settings = settings
        self._hub = hub
        self._turns = turns
        self._long_answers = long_answers
        self.router = APIRouter(prefix="/v1", tags=["jobs"], route_class=JsonBodyRoute)
        add = partial(add_route, self.router)
        body = ("cross-site", "too-large", "unsupported-media-type")
        add(
            "POST",
            "/jobs",
            self.post,
            "Submit a job",
            *body,
            "disk-full",
            s201="The job, queued.",
            s200="The job that has this dedupe key and has not ended.",
        )
        add("GET", "/jobs", self.list, "List jobs, newest first")
        add("GET", "/jobs/{id}", self.get, "Get a job, or wait for its end", "not-found", "too-many")
        self.router.add_api_route(
            "/jobs/{id}",
            self.delete,
            methods=["DELETE"],
            status_code=204,
            summary="Remove an ended job with all its data",
            responses={204: {"description": "The job was removed."}, **problems("not-found", "refused", "cross-site")},
        )
        for verb in (Verb.PAUSE, Verb.RESUME, Verb.STOP, Verb.CANCEL):
            handler = self.resume if verb is Verb.RESUME else self._wishing(verb)
            add(
                "POST",
                f"/jobs/{{id}}/{verb}",
                handler,
                f"{verb.value.capitalize()} a job",
                "not-found",
                "refused",
                *body,
            )
        summary = "Continue a failed or stopped job, or retry URLs that failed for one reason"
        add("POST", "/jobs/{id}/retry", self.retry, summary, "not-found", "refused", *body)

    def post(self, request: Request, body: PostedJob, key: IdempotencyKey = None) -> Answer[JobView]:
        """Stores the job and answers at once. A worker runs it later."""
        new = submission.new_job(body, self._settings)
        if key is None:
            job, fresh = jobs.enqueue(self._database, new)
            return Answer(view(self._database, job), 201 if fresh else 200, {"Location": f"/v1/jobs/{job.id}"})
        stored = store_once(self._database, new, request, key, body)
        first = json.loads(stored.text)
        headers = {"Location": f"/v1/jobs/{stored.job_id}"}
        if not stored.fresh:
            headers["Idempotent-Replayed"] = "true"
        return Answer(first["body"], first["status"], headers)

    def list(self, query: Annotated[JobListQuery, Query()]) -> Answer[ListPage[JobView]]:
        """Filter by status, kind, or part of the URL."""
        items, cursor = listed(self._database, query, self._settings.stale_after)
        return Answer(ListPage(items, cursor))

    async def get(self, request: Request, id: str, query: Annotated[WaitQuery, Query()]) -> Answer[JobView]:
        """With `wait`, the answer comes when the job has ended or paused, or after that many seconds."""
        self._turns.admit(caller_of(request.scope))
        answer = self._when_settled(request.scope, id, query.wait)
        if not query.wait:
            return await answer
        return await unless_gone(answer, request.receive) or Answer[Any](None)  # nobody reads this one

    async def _when_settled(self, scope: Scope, id: str, wait: float) -> Answer[JobView]:
        caller = caller_of(scope)
        if wait:
            async with self._turns.turn(caller):
                job = await run_in_threadpool(jobs.outline, self._database, id)
            if job.status in (Status.QUEUED, Status.RUNNING):
                self._hub.admit(scope)
                await self._hub.settled(id, wait, caller)
        async with self._turns.turn(caller):
            size = await run_in_threadpool(jobs.long_size, self._database, id)
            if not size:
                return await run_in_threadpool(self._answer, jobs.outline, id)
        async with self._long_answers.turn(caller, size):
            return await run_in_threadpool(self._answer, jobs.get, id)

    def _answer(self, read: Callable[[Database, str], Job], id: str) -> Answer[JobView]:
        return Answer(view(self._database, read(self._database, id), self._settings.stale_after))

    def delete(self, id: str) -> Response:
        """The server refuses to remove a job that has not ended: cancel it first."""
        remove(self._database, self._settings, id)
        return Response(status_code=204)

    def _wishing(self, verb: Verb) -> Callable[..., Answer[JobView]]:
        def wish(id: str, body: NoFields = NO_FIELDS) -> Answer[JobView]:
            """A repeated request has no further effect. The answer shows what you asked for; the job follows soon."""
            return self._ask(id, verb, {})

        wish.__name__ = verb.value
        return wish

    def resume(self, id: str, body: NewSizes = NO_SIZES) -> Answer[JobView]:
        """A repeated request has no further effect. It may change the sizes of a crawl: `fetchers`, …"""
        return self._ask(id, Verb.RESUME, body.model_dump(exclude_none=True))

    def retry(self, id: str, body: RetriedUrls = NO_REASON) -> Answer[JobView]:
        """With `reason`, retries the URLs that failed for this reason. For a completed job, a new job does this."""
        sizes = body.model_dump(exclude_none=True, exclude={"reason"})
        if body.reason is None:
            return self._ask(id, Verb.RETRY, sizes)
        if sizes:
            raise Problem(
                "invalid", "give either reason or sizes, not both: a retry by reason keeps the sizes of the job"
            )
        return Answer(view(self._database, requeue(self._database, jobs.outline(self._database, id), body.reason)))

    def _ask(self, id: str, verb: Verb, sizes: dict[str, float]) -> Answer[JobView]:
        return Answer(view(self._database, ask(self._database, self._settings.data, id, verb, sizes)))

"""The routes of external workers: claim, heartbeat, results, finish. The lease is in a header."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from pydantic import FailFast, Field, model_validator
from starlette.concurrency import run_in_threadpool

from silkline.api.answer_models import Answer, Claim, Claims, HeartbeatAnswer, Recorded, add_route
from silkline.api.bodies import JsonBodyRoute
from silkline.api.external import ENDS, LONGEST_NAME, NAME_LETTERS, ExternalWorkers, read_lease
from silkline.api.request_body import RequestBody
from silkline.api.routes.jobs import view
from silkline.config import Settings
from silkline.errors import SpecError
from silkline.model.database import Database
from silkline.model.job import AttemptEnd, End
from silkline.model.limited_lists import at_most
from silkline.model.result_fields import DATA, METADATA, wrong_fields
from silkline.model.spec import WebUrl
from silkline.store.job_view import JobView, progress_view

HEADER = "Silkline-Lease"
LeaseHeader = Annotated[
    str | None, Header(alias=HEADER, max_length=200, description="The lease that the claim returned.")
]
TITLE = r"^[\w.-]+$"
WORKER_NAME = rf"^[{NAME_LETTERS}]+$"


MOST_PAGES = 1_000  # of one delivery


class ClaimBody(RequestBody):
    kinds: Annotated[tuple[str, ...], at_most(20)] = Field(("extension",), min_length=1, max_length=20)
    wanted: int = Field(1, ge=1, le=100)
    name: str = Field("worker", max_length=LONGEST_NAME, pattern=WORKER_NAME)


class PageBody(RequestBody):
    url: WebUrl
    final_url: str | None = None  # a page chooses its address: an invalid one makes this page fail, not the delivery
    success: bool = True
    http_status: int | None = Field(None, ge=100, le=599)
    error: str | None = Field(None, max_length=60, pattern=TITLE)
    data: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _right_types(self) -> PageBody:
        wrong = wrong_fields(self.data, DATA) + wrong_fields(self.metadata, METADATA)
        if wrong:
            raise ValueError("; ".join(wrong))
        return self


class ResultsBody(RequestBody):
    pages: Annotated[tuple[PageBody, ...], FailFast(), at_most(MOST_PAGES)] = Field(min_length=1, max_length=MOST_PAGES)


class FinishBody(RequestBody):
    end: End
    reason: str = Field("", max_length=200)
    message: str = Field("", max_length=10_000)
    wait: float = Field(0, ge=0, le=86_400)


def _route_after(check: Callable[[Request], None]) -> type[JsonBodyRoute]:
    """A route that checks a request in a thread before it reads its body."""

    class CheckedRoute(JsonBodyRoute):
        async def before_body(self, request: Request) -> None:
            await run_in_threadpool(check, request)

    return CheckedRoute


class ExternalRoutes:
    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._workers = ExternalWorkers(database, settings)
        self._beat = min(settings.heartbeat_interval, settings.stale_after / 3)
        self.router = APIRouter(prefix="/v1", tags=["external workers"], route_class=_route_after(self._check_lease))
        kinds = ("cross-site", "too-large", "unsupported-media-type")
        lease = ("not-found", "lease-lost", "lease-missing", *kinds)
        add = partial(add_route, self.router, "POST")
        renewing = "Renew the lease of a job, and read what the user wants"
        add("/claims", self.claim, "Claim jobs", *kinds)
        add("/jobs/{id}/heartbeat", self.heartbeat, renewing, *lease)
        add("/jobs/{id}/results", self.results, "Deliver pages", "disk-full", *lease)
        add("/jobs/{id}/finish", self.finish, "Finish an attempt", *lease)

    def _check_lease(self, request: Request) -> None:
        """A body of megabytes is only for those who hold the lease. A claim names no job, and needs none."""
        if id := request.path_params.get("id"):
            self._workers.check(id, read_lease(request.headers.get(HEADER)))

    def claim(self, body: ClaimBody) -> Answer[Claims]:
        """Only jobs of kinds that external workers run, and fewer if they are large. An empty list: none is queued."""
        claimed = self._workers.claim(body.kinds, body.wanted, body.name)
        items = [Claim(str(lease), view(self._database, job)) for lease, job in claimed]
        return Answer(Claims(items, self._beat))

    def heartbeat(self, id: str, lease: LeaseHeader = None) -> Answer[HeartbeatAnswer]:
        """409 means that you no longer hold the lease: stop working on this job."""
        return Answer(HeartbeatAnswer(self._workers.renew(id, read_lease(lease))))

    def results(self, id: str, body: ResultsBody, lease: LeaseHeader = None) -> Answer[Recorded]:
        """Stores all pages in one transaction. A page that was delivered before does not change."""
        pages = [page.model_dump() for page in body.pages]
        delivered = self._workers.deliver(id, read_lease(lease), pages)
        progress = progress_view(delivered.job, delivered.counts, self._database.now())
        return Answer(Recorded(delivered.recorded, delivered.known, progress))

    def finish(self, id: str, body: FinishBody, lease: LeaseHeader = None) -> Answer[JobView]:
        """`end`: `completed`, `temporary` (retry later), `permanent` (no retry), `released` (another may run it).

        The server decides what happens to the job in the same way as for its own workers.
        """
        if body.end not in ENDS:
            raise SpecError(f"end must be one of {', '.join(ENDS)}")
        ended = AttemptEnd(body.end, body.reason, body.message, body.wait)
        return Answer(view(self._database, self._workers.finish(id, read_lease(lease), ended)))

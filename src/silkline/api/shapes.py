"""What answers look like, for the OpenAPI description. Tests compare real answers with it; nothing is built from it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from silkline.api.problems import KINDS, MEDIA_TYPE
from silkline.model.job import Status

Item = TypeVar("Item")
InBetween = Literal["pending", "pausing", "stopping", "cancelling"]
WaitReason = Literal[
    "crawl_delay",
    "retry_after",
    "refused",
    "errors",
    "robots_loading",
    "robots_unavailable",
    "page_retry",
    "slow_answers",
    "delay",
    "address",
    "level",
    "busy",
    "turn",
]
UrlState = Literal["queued", "done", "unchanged", "failed", "skipped"]


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProblemShape(Shape):
    """RFC 9457. `type` is stable; `retryable`: the same request may succeed later."""

    type: str = Field(examples=["urn:silkline:problem:not-found"])
    title: str
    status: int
    detail: str
    retryable: bool


class ProgressShape(Shape):
    """discovered = queued + in_flight + done + unchanged + failed + skipped, always."""

    discovered: int
    queued: int
    in_flight: int
    done: int
    unchanged: int
    failed: int
    skipped: int
    not_stored: int = Field(description="URLs of traps that are neither in these counts nor in the ledger, at least.")
    bytes: int
    seconds: float
    rate: float | None = Field(description="Pages a second.")
    eta_seconds: float | None
    updated_at: datetime | None


class JobShape(Shape):
    id: str = Field(examples=["019a8f6e-5dc2-7340-86fe-b900fe2551e3"])
    kind: str = Field(examples=["site"])
    status: Status | InBetween
    reason: str | None = Field(description="Why the last attempt ended.")
    message: str | None = Field(description="For people: what went wrong, or what the job waits for.")
    url: str | None
    spec: dict[str, Any] = Field(description="What was asked; headers, cookies and proxies are hidden.")
    metadata: dict[str, Any]
    progress: ProgressShape
    attempt: int
    retries: int
    crashes: int
    max_retries: int
    priority: int
    tenant: str
    dedupe_key: str | None
    parent_id: str | None
    worker_id: str | None
    host: str | None
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    last_heartbeat: datetime | None
    deadline_at: datetime | None
    links: dict[str, str]


class ResultShape(Shape):
    id: int
    job_id: str
    url_id: int
    original_url: str | None
    final_url: str
    data: dict[str, Any] = Field(description="`markdown`, `title`, …")
    success: bool
    metadata: dict[str, Any] = Field(description="`http_status`, `error`, timings, …")
    created_at: datetime


class UrlShape(Shape):
    id: int
    url: str
    host: str
    depth: int
    state: UrlState
    reason: str | None
    detail: str | None
    http_status: int | None
    attempts: int
    found_via: str
    found_on: str | None = Field(description="The page that named it first.")
    found_on_id: int | None


class SourceShape(Shape):
    id: int
    url: str
    kind: Literal["page", "sitemap", "redirect"]
    via: list[str] = Field(description="The redirects between this and the URL, in the order they are followed.")


class LinksInShape(Shape):
    """How many links lead to the URL, as of the last checkpoint, and the first places they stand in."""

    count: int
    sources: list[SourceShape]


class LinksOutShape(Shape):
    """How many addresses the page names, and the first of them, in its order."""

    count: int | None = Field(description="Null where only those are known that the page was the first to name.")
    unknown: int = Field(description="So many are not in the ledger, because a crawler must not follow them.")
    urls: list[UrlShape]


class ErrorShape(UrlShape):
    links_in: LinksInShape


class Reason(Shape):
    state: Literal["failed", "skipped"]
    reason: str
    urls: int


class LineShape(Shape):
    id: int
    at: datetime
    attempt: int
    level: str
    message: str


class ListPage(Shape, Generic[Item]):
    """One page of a list. Ask again with `cursor` = `next_cursor` until that is null."""

    items: list[Item]
    next_cursor: str | None


class Errors(Shape):
    """Failed URLs, each with the pages that lead to it, and all causes counted."""

    reasons: list[Reason]
    items: list[ErrorShape]
    next_cursor: str | None


class HostShape(Shape):
    """discovered = queued + done + unchanged + failed + skipped, as the ledger has it."""

    host: str
    discovered: int
    queued: int
    done: int
    unchanged: int
    failed: int
    skipped: int
    out_of_scope: int = Field(
        description="Of those skipped: outside of the scope. Equal to `discovered`: pages only link to this host."
    )


class WaitShape(Shape):
    host: str
    queued: int = Field(description="URLs in memory that wait for this host; the ledger may have more.")
    in_flight: int
    reason: WaitReason
    detail: str = Field(description="What happened before, such as http_429.")
    seconds: float = Field(description="What the reason is about, such as the delay that robots.txt asks for.")
    next_at: datetime | None = Field(description="When the host may be asked again; null where an event decides.")
    seconds_left: float = Field(description="What is queued takes about this long at this pace.")
    says: str = Field(examples=["robots.txt asks for 5 s between pages; next page in 3 s"])


class HostReportShape(Shape):
    """Why is it slow? `waiting`: the hosts that hold a running crawl up most. `items`: those with the most URLs.

    Hosts that pages of the crawl only link to come last.
    """

    waiting: list[WaitShape]
    items: list[HostShape]


class Explanation(Shape):
    """What became of one URL, how the crawl came to it, seed first, who links to it and where it links."""

    url: UrlShape
    says: str
    path: list[UrlShape]
    result: ResultShape | None
    links_in: LinksInShape
    links_out: LinksOutShape


class FetchShape(Shape):
    job: JobShape
    result: ResultShape
    cached: bool


class WorkerShape(Shape):
    id: str
    host: str
    pid: int
    state: str
    alive: bool
    slots: int
    jobs_held: int
    kinds: list[str] | None = Field(description="The kinds of job that it runs; none for a command that runs one job.")
    version: str
    started_at: datetime
    last_seen: datetime


class Claim(Shape):
    lease: str = Field(description="Send it as `Silkline-Lease` with every request about this job.")
    job: JobShape


class Claims(Shape):
    items: list[Claim]
    heartbeat_seconds: float = Field(description="Send a heartbeat at least this often.")


class HeartbeatAnswer(Shape):
    desired: Literal["run", "pause", "stop", "cancel"]


class Recorded(Shape):
    recorded: int
    known: int = Field(description="Pages that had been recorded before, and were left as they are.")
    progress: ProgressShape


class Requeued(Shape):
    urls: int
    job: JobShape


class TokenShape(Shape):
    id: str
    name: str
    scope: Literal["worker", "read", "write", "admin"]
    created_at: datetime
    expires_at: datetime | None


class NewTokenShape(TokenShape):
    token: str = Field(description="Shown this once.")


class Tokens(Shape):
    items: list[TokenShape]


class Health(Shape):
    status: str


def problems(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The problems an operation may answer with, besides those that every operation may."""
    named = ("bad-request", "unauthorized", "forbidden", "wrong-host", "invalid", "unavailable", "internal", *kinds)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemShape"}}}
    return {KINDS[kind][0]: {"description": KINDS[kind][1], "content": content} for kind in named}

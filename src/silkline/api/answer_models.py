"""What the API answers. Each route returns an `Answer` of one of these dataclasses, and the same class documents it.

`mypy` proves that a route answers the class that its signature names, and `answered` reads the documentation from that
signature. So no field can be documented that is not answered, or the other way round.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from fastapi import APIRouter, Response

from silkline.api.problems import KINDS, MEDIA_TYPE
from silkline.model.job import Wish
from silkline.store.job_view import JobView, ProgressView
from silkline.store.url_view import ErrorView, ResultView

Value = TypeVar("Value")
Item = TypeVar("Item")
WaitReason = Literal[
    "crawl_delay",
    "retry_after",
    "refused",
    "errors",
    "robots_loading",
    "robots_unavailable",
    "robots_no_room",
    "page_retry",
    "slow_answers",
    "delay",
    "address",
    "booked",
    "reading",
    "rendering",
    "level",
    "busy",
    "turn",
]
Scope = Literal["worker", "read", "write", "admin"]
# A class with this configuration has no other fields, and its documentation says so.
EXACT: Final = {"extra": "forbid"}
_encode = msgspec.json.Encoder().encode


def to_json(value: Any) -> bytes:
    return _encode(value)


class Answer(Response, Generic[Value]):
    """A value as JSON. It is encoded once, in the thread of the route."""

    def __init__(self, value: Value, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(_encode(value), status, headers, "application/json")


@dataclass(frozen=True, slots=True)
class ReasonView:
    """How many URLs failed or were skipped for one reason."""

    __pydantic_config__ = EXACT

    state: Literal["failed", "skipped"]
    reason: str
    urls: int


@dataclass(frozen=True, slots=True)
class LineView:
    """One line of the log of a job, with the fields of every log of Silkline (docs/reference/log.md)."""

    __pydantic_config__ = EXACT

    id: int
    at: datetime
    level: str
    logger: str
    message: str
    worker: str | None
    job: str
    attempt: int
    shard: int | None
    event: str | None
    data: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Item]):
    """One page of a list. For the next page send `cursor` = `next_cursor`; null means that this is the last page."""

    __pydantic_config__ = EXACT

    items: list[Item]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """URLs that failed or were skipped, each with the pages that link to it, and the number of URLs for each reason."""

    __pydantic_config__ = EXACT

    reasons: list[ReasonView] = field(metadata={"description": "The most frequent reasons, at most 500."})
    items: list[ErrorView]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class HostView:
    """One host: discovered = queued + done + unchanged + failed + skipped, from the ledger."""

    __pydantic_config__ = EXACT

    host: str
    discovered: int
    queued: int
    done: int
    unchanged: int
    failed: int
    skipped: int
    out_of_scope: int = field(
        metadata={"description": "Skipped URLs that are out of scope. Equal to `discovered` if pages only link here."}
    )


@dataclass(frozen=True, slots=True)
class WaitView:
    """A host that a running crawl waits for."""

    __pydantic_config__ = EXACT

    host: str
    queued: int = field(
        metadata={"description": "URLs in memory that wait for this host; the ledger may contain more."}
    )
    in_flight: int
    reason: WaitReason
    detail: str = field(
        metadata={"description": "What happened before, such as http_429, or the job that comes first."}
    )
    seconds: float = field(
        metadata={"description": "The time that belongs to the reason, such as the delay of robots.txt."}
    )
    next_at: datetime | None = field(
        metadata={"description": "When the next request may go to the host; null if an event decides."}
    )
    seconds_left: float = field(metadata={"description": "About this long until the queued URLs are fetched."})
    says: str = field(metadata={"examples": ["robots.txt asks for 5 s between pages; next page in 3 s"]})


@dataclass(frozen=True, slots=True)
class HostReport:
    """Why is the crawl slow? `waiting`: the hosts that delay it most. `items`: the hosts with the most URLs.

    Hosts to which the pages of the crawl only link come last.
    """

    __pydantic_config__ = EXACT

    waiting: list[WaitView]
    items: list[HostView]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """One page, and the job that fetched it."""

    __pydantic_config__ = EXACT

    job: JobView
    result: ResultView
    cached: bool


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One live worker."""

    __pydantic_config__ = EXACT

    id: str
    host: str
    pid: int
    state: str
    alive: bool
    slots: int
    jobs_held: int
    kinds: list[str] | None = field(
        metadata={"description": "The kinds of job that it runs. Empty for a command that runs one job of its own."}
    )
    version: str
    started_at: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """One claimed job."""

    __pydantic_config__ = EXACT

    lease: str = field(metadata={"description": "Send it as `Silkline-Lease` with every request about this job."})
    job: JobView


@dataclass(frozen=True, slots=True)
class Claims:
    """The claimed jobs."""

    __pydantic_config__ = EXACT

    items: list[Claim]
    heartbeat_seconds: float = field(metadata={"description": "Send a heartbeat at least this often."})


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """What the user wants of the job."""

    __pydantic_config__ = EXACT

    desired: Wish


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a delivery changed."""

    __pydantic_config__ = EXACT

    recorded: int
    known: int = field(metadata={"description": "Pages that were delivered before. They did not change."})
    progress: ProgressView


@dataclass(frozen=True, slots=True)
class TokenView:
    """One token, without its secret."""

    __pydantic_config__ = EXACT

    id: str
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewTokenView(TokenView):
    """A new token."""

    __pydantic_config__ = EXACT

    token: str = field(metadata={"description": "Only this answer contains it."})


@dataclass(frozen=True, slots=True)
class TokenList:
    """All tokens."""

    __pydantic_config__ = EXACT

    items: list[TokenView]


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the server."""

    __pydantic_config__ = EXACT

    status: Literal["ok", "ready"]


def answers_of(handler: Callable[..., Any]) -> list[Any]:
    """The classes that a route answers, in the order of its signature: `-> Answer[A] | Answer[B]` gives A and B."""
    hint = get_type_hints(handler)["return"]
    options = get_args(hint) if get_origin(hint) in (types.UnionType, Union) else (hint,)
    return [get_args(option)[0] for option in options if get_origin(option) is Answer]


def answered(handler: Callable[..., Any], *kinds: str, **descriptions: str) -> dict[int | str, dict[str, Any]]:
    """The documentation of a route: its answers, by status, and the problems of `kinds`.

    `descriptions` has the status of each answer, such as `s201="The job."`; without it the status is 200.
    """
    models = answers_of(handler)
    statuses = [int(name[1:]) for name in descriptions] or [200]
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": models[min(place, len(models) - 1)]} for place, status in enumerate(statuses)
    }
    for name, text in descriptions.items():
        found[int(name[1:])]["description"] = text
    return {**found, **problems(*kinds)}


def add_route(
    router: APIRouter, method: str, path: str, handler: Callable[..., Any], summary: str, *kinds: str, **texts: str
) -> None:
    """Add a route that returns an `Answer`. `kinds` and `texts` as for `answered`."""
    router.add_api_route(
        path,
        handler,
        methods=[method],
        status_code=int(next(iter(texts), "s200")[1:]),
        summary=summary,
        response_model=None,
        responses=answered(handler, *kinds, **texts),
    )


def problems(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The problems that an operation may answer with, and those that every operation may answer with."""
    refused = ("bad-request", "unauthorized", "forbidden", "wrong-host", "invalid", "too-many")
    named = (*refused, "unavailable", "internal", *kinds)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    return {KINDS[kind][0]: {"description": KINDS[kind][1], "content": content} for kind in named}

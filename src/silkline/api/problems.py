"""Errors as RFC 9457 problem documents: a status code, a type that never changes, and whether a retry may succeed."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from silkline.errors import (
    DiskFull,
    LeaseLost,
    NotFound,
    Refused,
    SilklineError,
    StoreError,
    Unavailable,
    UsageError,
)
from silkline.log import request_id

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = "2"
LONGEST_DETAIL = 20_000  # a message about a request repeats parts of it
# Each kind of problem: its status, its title, and whether the same request may succeed later.
KINDS: dict[str, tuple[int, str, bool]] = {
    "bad-request": (400, "The request cannot be read", False),
    "unauthorized": (401, "A valid token is needed", False),
    "forbidden": (403, "This is not allowed", False),
    "cross-site": (403, "Requests from other sites are refused", False),
    "not-found": (404, "Not found", False),
    "method-not-allowed": (405, "This path does not support this method", False),
    "refused": (409, "The job's state does not allow this", False),
    "lease-lost": (409, "You no longer hold the lease of this job", False),
    "conflict": (409, "Another request is doing the same thing right now", True),
    "dedupe-key-in-use": (409, "Another job has this dedupe key", True),
    "too-slow": (408, "The request did not arrive in time", True),
    "too-large": (413, "The body is too large", False),
    "unsupported-media-type": (415, "The type of the body is not supported", False),
    "wrong-host": (421, "This server does not accept this Host header", False),
    "invalid": (422, "The request is not valid", False),
    "key-reused": (422, "The idempotency key was used for another request", False),
    "lease-missing": (428, "The lease is missing", False),
    "too-many": (429, "You have too many connections, streams, downloads or answers open", True),
    "too-many-tries": (429, "Too many wrong tokens", True),
    "internal": (500, "Internal error in Silkline", False),
    "fetch-failed": (502, "The page could not be fetched", True),
    "unavailable": (503, "The database cannot be reached", True),
    "busy": (503, "The server is overloaded", True),
    "too-many-connections": (503, "Too many connections are open", True),
    "too-many-downloads": (503, "Too many downloads are open", True),
    "too-many-streams": (503, "Too many event streams are open", True),
    "disk-full": (507, "The disk is full", True),
}

AsPage = Callable[[Request, "Problem"], Response | None]

log = logging.getLogger("silkline.api")


@dataclass(frozen=True, slots=True)
class ProblemDocument:
    """RFC 9457. `type` never changes its meaning. `retryable`: the same request may succeed later."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - pydantic reads it, nobody changes it

    type: str
    title: str
    status: int
    detail: str
    retryable: bool


class Problem(Exception):
    """Raise this to answer with a problem document."""

    def __init__(
        self, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.status, self.title, usually = KINDS[kind]
        self.retryable = usually if retryable is None else retryable

    def document(self) -> ProblemDocument:
        return ProblemDocument(
            type=f"urn:silkline:problem:{self.kind}",
            title=self.title,
            status=self.status,
            detail=self.detail,
            retryable=self.retryable,
        )

    def response(self) -> Response:
        headers = {"Retry-After": RETRY_AFTER} if self.retryable else {}
        body = msgspec.json.encode(self.document())
        return Response(body, self.status, {**headers, **self.headers}, MEDIA_TYPE)


def problem_of(error: SilklineError) -> Problem:
    """The problem document for one of our own errors."""
    match error:
        case UsageError():
            return Problem("invalid", str(error)[:LONGEST_DETAIL])
        case NotFound():
            return Problem("not-found", str(error))
        case LeaseLost():
            return Problem("lease-lost", str(error))
        case Refused():
            return Problem("refused", str(error))
        case DiskFull():
            return Problem("disk-full", "the disk of the database is full")
        case Unavailable():
            return Problem("unavailable", "the database cannot be reached right now; nothing was changed")
    return _unexpected(error)


def _unexpected(error: Exception) -> Problem:
    """The caller gets only the id of its request. The operator finds the error in the log under this id."""
    number = request_id.get() or secrets.token_hex(4)
    log.error("problem %s", number, exc_info=error)
    return Problem("internal", f"the log of the server has the details under problem {number}")


def install(app: FastAPI, page: AsPage = lambda request, problem: None) -> None:
    """Answer every error of a route with a problem document, or with the page that `page` makes of it."""

    def respond(request: Request, error: Exception) -> Response:
        problem = _problem_for(request, error)
        return page(request, problem) or problem.response()

    def left(request: Request, error: Exception) -> Response:
        """The client disconnected while the server read the body. Nobody reads this answer."""
        log.debug("%s: a client disconnected before its request was complete", request.method)
        return Response(status_code=400)

    app.add_exception_handler(ClientDisconnect, left)
    for kind in (Problem, SilklineError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, respond)


def _problem_for(request: Request, error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case SilklineError():
            if isinstance(error, StoreError):
                log.warning("%s %s: %s", request.method, request.url.path, error)
            return problem_of(error)
        case RequestValidationError():
            return Problem("invalid", "; ".join(map(_sentence, error.errors()[:20])) or "the request is not valid")
        case HTTPException():
            return _plain(request, error)
    return _unexpected(error)


def _sentence(detail: Mapping[str, Any]) -> str:
    place = [str(part) for part in detail["loc"][1:]]
    if detail["type"] == "extra_forbidden":
        return f"unknown parameter {'.'.join(place)!r}"
    return f"{'.'.join(place) or detail['loc'][0]}: {detail['msg']}"


def _plain(request: Request, error: HTTPException) -> Problem:
    """Errors of the framework: no such route, wrong method."""
    if error.status_code == 404:
        return Problem("not-found", f"no page and no endpoint at {request.url.path[:200]}")
    kind = "method-not-allowed" if error.status_code == 405 else "bad-request"
    return Problem(kind, str(error.detail), headers=error.headers)

"""Limits the size of bodies: for each route, for each caller, and for all large bodies together.

Only jobs and deliveries are long. A caller without a token may only send a login form. A small body is never refused
because of large ones: all small bodies together are limited by the number of connections.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.caller_limit import caller_of
from silkline.api.problems import Problem

LONG: Final = re.compile(r"/v1/jobs(/[^/]*/results)?")
SHORT: Final = 262_144  # for all other routes of the API
FORM: Final = 1_048_576
WITHOUT_TOKEN: Final = 8_192
SMALL: Final = 65_536  # a body up to this size is not counted
TOGETHER: Final = 4  # this many of the largest bodies may be in memory at once
EACH: Final = 2  # of these, for one caller


def limit_of(path: str, *, known: bool, largest: int) -> int:
    """The maximum size of a body for a path. `known`: the caller has a token, or needs none."""
    if not known or path == "/login":
        return min(WITHOUT_TOKEN, largest)
    if LONG.fullmatch(path):
        return largest
    return min(SHORT if path.startswith("/v1/") else FORM, largest)


class BodyLimit:
    """Stops reading at the limit, whatever the headers say and however the body is sent."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self._app = app
        self._largest = largest
        self._held: Counter[str] = Counter()  # bytes of large bodies, by caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = limit_of(scope["path"], known=scope.get("caller") is not None, largest=self._largest)
        came = counted = 0

        async def counting() -> Message:
            nonlocal came, counted
            message = await receive()
            came += len(message.get("body", b""))
            if came > limit:
                raise _too_large(limit)
            if came > max(counted, SMALL):
                self._hold(caller_of(scope), came - counted)
                counted = came
            return message

        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or len(announced) > 15 or int(announced) > limit:
            await _too_large(limit).response()(scope, receive, send)
            return
        try:
            await self._app(scope, counting, send)
        finally:
            if counted:
                self._release(caller_of(scope), counted)

    def _hold(self, caller: str, size: int) -> None:
        if self._held[caller] + size > EACH * self._largest:
            raise Problem("too-many", "the server is reading large bodies of yours already; send this one again later")
        if self._held.total() + size > TOGETHER * self._largest:
            raise Problem("busy", "the server is reading too many large bodies; send this one again later")
        self._held[caller] += size

    def _release(self, caller: str, size: int) -> None:
        self._held[caller] -= size
        if not self._held[caller]:
            del self._held[caller]


def _too_large(limit: int) -> Problem:
    return Problem("too-large", f"the body may have at most {limit:,} bytes")

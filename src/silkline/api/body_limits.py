"""Limits the size of bodies: for each route, and for all bodies together.

Only jobs and deliveries are long. A caller without a token may only send a login form.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.problems import Problem

LONG: Final = re.compile(r"/v1/jobs(/[^/]*/results)?")
SHORT: Final = 262_144  # for all other routes of the API
FORM: Final = 1_048_576
WITHOUT_TOKEN: Final = 8_192
TOGETHER: Final = 4  # this many of the largest bodies may be in memory at once


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
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = limit_of(scope["path"], known=scope.get("caller") is not None, largest=self._largest)
        came = 0

        async def counting() -> Message:
            nonlocal came
            message = await receive()
            size = len(message.get("body", b""))
            came += size
            self._held += size
            if came > limit:
                raise _too_large(limit)
            if self._held > TOGETHER * self._largest:
                raise Problem("busy", "the server is reading too many large bodies; send this one again later")
            return message

        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or len(announced) > 15 or int(announced) > limit:
            await _too_large(limit).response()(scope, receive, send)
            return
        try:
            await self._app(scope, counting, send)
        finally:
            self._held -= came


def _too_large(limit: int) -> Problem:
    return Problem("too-large", f"the body may have at most {limit:,} bytes")

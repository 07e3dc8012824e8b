"""Limits the size of bodies: for each route, for each caller, and for all large bodies together.

Only jobs and deliveries are long. A caller without a token may only send a login form. A small body is never refused
because of large ones: all small bodies together are limited by the number of connections.
"""

from __future__ import annotations

import re
from typing import Final

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.body_room import BodyRoom, HeldBody, busy
from silkline.api.caller_limit import caller_of
from silkline.api.problems import Problem

LONG: Final = re.compile(r"/v1/jobs(/[^/]*/results)?")
SHORT: Final = 262_144  # for all other routes of the API
FORM: Final = 1_048_576
WITHOUT_TOKEN: Final = 8_192
SMALL: Final = 65_536  # a body up to this size is not counted


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
        self._room = BodyRoom(largest)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = scope.get("caller") is not None
        limit = limit_of(scope["path"], known=known, largest=self._largest)
        announced = Headers(scope=scope).get("content-length")
        if announced is not None and (not announced.isdecimal() or len(announced) > 15 or int(announced) > limit):
            await _too_large(limit).response()(scope, receive, send)
            return
        body = HeldBody(caller_of(scope) if known else "", limit if announced is None else int(announced))
        came = 0

        async def counting() -> Message:
            nonlocal came
            message = await _unless_refused(body, receive)
            came += len(message.get("body", b""))
            if came > limit:
                raise _too_large(limit)
            body.arrives = message.get("more_body", False)
            if came > max(body.size, SMALL):
                self._room.hold(body, came)
            return message

        try:
            await self._app(scope, counting, send)
        finally:
            self._room.release(body)


async def _unless_refused(body: HeldBody, receive: Receive) -> Message:
    """The next part of a body. Raises a `Problem` if the body must make room for another one."""
    if not body.size or not body.arrives:
        return await receive()
    with anyio.CancelScope() as waiting:
        body.stop_waiting = waiting.cancel
        if not body.refused:
            message = await receive()
    if body.refused:
        raise busy()
    return message


def _too_large(limit: int) -> Problem:
    return Problem("too-large", f"the body may have at most {limit:,} bytes")

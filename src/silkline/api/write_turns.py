"""Turns for requests that change something: few run at the same time, fewer of one caller, and callers take turns.

Such a request parses its body, and may wait for the lock of the database. It has a turn only from the end of its body
to the start of its answer, so a slow sender holds none. Its turns are not those of the requests that read.

Requests that write pages of one job exclude each other. They wait for each other before they have a turn: those of one
lease here, so nobody without the lease can make them wait. `ExternalWorkers` refuses any others.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.auth import ANY
from silkline.api.caller_turns import CallerTurns, answer_in_turn
from silkline.api.problems import Problem
from silkline.api.request_gate import SAFE, scope_needed

WRITES: Final = 4  # of the threads of the server
WRITES_EACH: Final = 2
DELIVERY: Final = re.compile(r"/v1/jobs/([^/]*)/(?:results|finish)")
FETCH: Final = "/v1/fetch"  # it waits for its page, and takes turns itself (`FetchRoutes`)


def write_turns() -> CallerTurns:
    return CallerTurns(most=WRITES, most_each=WRITES_EACH)


class WriteLimit:
    """Reads the body of a request, then lets the request wait for its turn."""

    def __init__(self, app: ASGIApp, turns: CallerTurns) -> None:
        self._app = app
        self._turns = turns
        self._leases = CallerTurns(most=sys.maxsize, most_each=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_write(scope):
            await self._app(scope, receive, send)
            return
        try:
            body: bytes | None = await _whole(receive)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        if body is None:
            return

        async def receiving() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            message: Message = {"type": "http.request", "body": body, "more_body": False}
            body = None  # it may have 16 MB
            return message

        if lease := _lease_of(scope):
            await answer_in_turn(self._in_turn, self._leases, scope, receiving, send, of=lease)
        else:
            await self._in_turn(scope, receiving, send)

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_in_turn(self._app, self._turns, scope, receive, send)


async def _whole(receive: Receive) -> bytes | None:
    """The body. None: the client went away before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


def _lease_of(scope: Scope) -> str | None:
    """The job and the lease of a request that writes pages."""
    match = DELIVERY.fullmatch(scope["path"])
    lease = Headers(scope=scope).get("silkline-lease")
    return f"{match[1]} {lease}" if match and lease else None


def _is_write(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] in SAFE or scope.get("caller") is None:
        return False
    return scope_needed(scope["method"], scope["path"]) not in (None, ANY) and scope["path"] != FETCH

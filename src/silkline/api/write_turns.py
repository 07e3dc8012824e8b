"""Turns for requests that change something: few run at the same time, fewer of one caller, and callers take turns.

Such a request parses its body, and may wait for the lock of the database. It has a turn only from the end of its body
to the start of its answer, so a slow sender holds none. Its turns are not those of the requests that read. A request
that waits for its turn holds the bytes of its body, which `BodyLimit` counts, and nothing that was made of them.

`POST /v1/fetch` has a turn until it has stored its job; `FetchRoutes` ends it.

Requests that write pages of one job exclude each other. They wait for each other before they have a turn: those of one
lease here, so nobody without the lease can make them wait. `ExternalWorkers` refuses any others. A caller can invent
leases, so the deliveries of a caller are counted as well.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.auth import ANY
from silkline.api.caller_limit import caller_of
from silkline.api.caller_turns import WAITING_EACH, CallerTurns, answer_in_turn, too_many_wait
from silkline.api.problems import Problem
from silkline.api.request_gate import SAFE, scope_needed

WRITES: Final = 4  # of the threads of the server
WRITES_EACH: Final = 2
DELIVERY: Final = re.compile(r"/v1/jobs/([^/]*)/(?:results|finish)")


def write_turns() -> CallerTurns:
    return CallerTurns(most=WRITES, most_each=WRITES_EACH)


class WriteLimit:
    """Reads the body of a request, then lets the request wait for its turn."""

    def __init__(self, app: ASGIApp, turns: CallerTurns) -> None:
        self._app = app
        self._turns = turns
        self._leases = CallerTurns(most=sys.maxsize, most_each=1)
        self._deliveries: Counter[str] = Counter()  # by caller

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

        async def in_turn(scope: Scope, receiving: Receive, send: Send) -> None:
            await answer_in_turn(self._app, self._turns, scope, receiving, send, client=receive)

        lease = _lease_of(scope)
        if lease is None:
            await in_turn(scope, receiving, send)
            return
        caller = caller_of(scope)
        if self._deliveries[caller] >= WAITING_EACH:
            await too_many_wait().response()(scope, receiving, send)
            return
        self._deliveries[caller] += 1
        try:
            await answer_in_turn(in_turn, self._leases, scope, receiving, send, of=lease, client=receive)
        finally:
            self._deliveries[caller] -= 1
            if not self._deliveries[caller]:
                del self._deliveries[caller]


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
    return scope_needed(scope["method"], scope["path"]) not in (None, ANY)

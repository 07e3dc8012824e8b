"""Turns for requests that read: they look through results, count, or search.

Only some of the threads of the server read at the same time, and only half of them for one caller. A download takes a
turn for each of its portions (`api/downloads.py`).
"""

from __future__ import annotations

import re
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from silkline.api.caller_turns import CallerTurns, answer_in_turn
from silkline.api.request_gate import scope_needed

READS: Final = 6  # of the threads of the server
READS_EACH: Final = 3
# They may wait for an event. They take turns only while they read (`JobRoutes.get`, `api/events.py`).
_WAITS: Final = re.compile(r"/v1/jobs/[^/]+|/v1/(jobs/[^/]+/)?events")


def read_turns() -> CallerTurns:
    return CallerTurns(most=READS, most_each=READS_EACH)


class ReadLimit:
    """Lets every request that reads wait for its turn. It holds the turn until its answer begins."""

    def __init__(self, app: ASGIApp, turns: CallerTurns) -> None:
        self._app = app
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _is_read(scope):
            await answer_in_turn(self._app, self._turns, scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_read(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or scope.get("caller") is None:
        return False
    return scope_needed("GET", scope["path"]) is not None and not _WAITS.fullmatch(scope["path"])

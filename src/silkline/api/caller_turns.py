"""Turns of callers: few requests run at the same time, fewer of one caller, and callers take turns.

A request may take seconds of a thread. The others wait here, on the event loop, so there is always a free thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.caller_limit import caller_of
from silkline.api.problems import Problem

WAITING_EACH: Final = 100


class CallerTurns:
    """One for requests that read, another one for those that change something. Runs on the event loop only.

    A free turn goes to the caller who has waited for one for the longest time.
    """

    def __init__(self, *, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Event]] = {}  # the caller whose turn is next comes first

    def waiting(self, caller: str) -> int:
        """How many requests of a caller wait."""
        return len(self._waiting.get(caller, ()))

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it for the time of the context."""
        await self.take(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    async def take(self, caller: str) -> None:
        if self._is_free(caller):  # whoever waits may not have a turn now
            self._held[caller] += 1
            return
        mine = asyncio.Event()
        self._waiting.setdefault(caller, deque()).append(mine)
        try:
            await mine.wait()
        except asyncio.CancelledError:
            if mine.is_set():
                self.give_back(caller)  # it came at the same moment
            else:
                self._forget(caller, mine)
            raise

    def give_back(self, caller: str) -> None:
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]
        while next_one := next((each for each in self._waiting if self._is_free(each)), None):
            self._held[next_one] += 1
            queue = self._waiting.pop(next_one)
            queue.popleft().set()
            if queue:
                self._waiting[next_one] = queue  # behind the others

    def _is_free(self, caller: str) -> bool:
        return self._held.total() < self._most and self._held[caller] < self._most_each

    def _forget(self, caller: str, mine: asyncio.Event) -> None:
        queue = self._waiting[caller]
        queue.remove(mine)
        if not queue:
            del self._waiting[caller]


async def answer_in_turn(
    app: ASGIApp, turns: CallerTurns, scope: Scope, receive: Receive, send: Send, *, of: str | None = None
) -> None:
    """Let the app answer when its caller has a turn. Many requests of one caller that wait are refused.

    `of`: who the turn is for, if not the caller.
    """
    caller, held = caller_of(scope) if of is None else of, False
    if turns.waiting(caller) >= WAITING_EACH:
        problem = Problem("too-many", f"{WAITING_EACH} of your requests are waiting for an answer already")
        await problem.response()(scope, receive, send)
        return

    def give_back() -> None:
        nonlocal held
        if held:
            turns.give_back(caller)
        held = False

    async def sending(message: Message) -> None:
        give_back()
        await send(message)

    await turns.take(caller)
    held = True
    try:
        await app(scope, receive, sending)
    finally:
        give_back()

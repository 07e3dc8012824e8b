"""Turns of callers: few requests run at the same time, fewer of one caller, and callers take turns.

A request may take seconds of a thread. The others wait here, on the event loop, so there is always a free thread. They
have not parsed their bodies yet, and a request whose client goes away leaves its place.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.caller_limit import caller_of
from silkline.api.problems import Problem

WAITING_EACH: Final = 100
Result = TypeVar("Result")
GIVE_BACK: Final = "give_back_turn"  # of a scope: ends the turn of a request before its answer begins


class _Place(asyncio.Event):
    """The place of one request that waits. It is set when the request waits no longer."""

    has_turn = False


class CallerTurns:
    """One for requests that read, another one for those that change something. Runs on the event loop only.

    A free turn goes to the caller who has waited for one for the longest time.
    """

    def __init__(self, *, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Place]] = {}  # the caller whose turn is next comes first

    def waiting(self, caller: str) -> int:
        """How many requests of a caller wait."""
        return len(self._waiting.get(caller, ()))

    def admit(self, caller: str) -> None:
        """Raise a `Problem` if very many requests of this caller wait."""
        if self.waiting(caller) >= WAITING_EACH:
            raise too_many_wait()

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it for the time of the context."""
        await self.take(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    async def take(self, caller: str, receive: Receive | None = None) -> bool:
        """Wait for a turn. False: there is none, because the client that `receive` hears has gone away."""
        if self._is_free(caller):  # whoever waits may not have a turn now
            self._held[caller] += 1
            return True
        mine = _Place()
        self._waiting.setdefault(caller, deque()).append(mine)
        gone = asyncio.create_task(until_gone(receive)) if receive is not None else None
        if gone is not None:
            gone.add_done_callback(lambda _: self._leave(caller, mine))
        try:
            await mine.wait()
        except asyncio.CancelledError:
            if mine.has_turn:
                self.give_back(caller)  # it came at the same moment
            else:
                self._leave(caller, mine)
            raise
        finally:
            if gone is not None:
                gone.cancel()
        return mine.has_turn

    def give_back(self, caller: str) -> None:
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]
        while next_one := next((each for each in self._waiting if self._is_free(each)), None):
            self._held[next_one] += 1
            queue = self._waiting.pop(next_one)
            place = queue.popleft()
            place.has_turn = True
            place.set()
            if queue:
                self._waiting[next_one] = queue  # behind the others

    def _is_free(self, caller: str) -> bool:
        return self._held.total() < self._most and self._held[caller] < self._most_each

    def _leave(self, caller: str, mine: _Place) -> None:
        if mine.is_set():
            return
        mine.set()
        queue = self._waiting[caller]
        queue.remove(mine)
        if not queue:
            del self._waiting[caller]


def too_many_wait() -> Problem:
    return Problem("too-many", f"{WAITING_EACH} of your requests are waiting for an answer already")


async def until_gone(receive: Receive) -> None:
    """Wait until the client has gone away. What it still sends is dropped."""
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    except Problem:  # it sent too much: it gets its answer when it has its turn
        await asyncio.Event().wait()


async def unless_gone(work: Coroutine[Any, Any, Result], receive: Receive) -> Result | None:
    """The result of some work. None: the client went away before its end, which stopped the work."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        working.cancel()
        gone.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def answer_in_turn(
    app: ASGIApp,
    turns: CallerTurns,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    of: str | None = None,
    client: Receive | None = None,
) -> None:
    """Let the app answer when its caller has a turn. Many requests of one caller that wait are refused.

    The turn ends when the answer begins, or when the app calls `scope[GIVE_BACK]`. `of`: who the turn is for, if not
    the caller. `client`: tells that the client went away, if `receive` has a body that is to be kept.
    """
    caller, held = caller_of(scope) if of is None else of, False
    try:
        turns.admit(caller)
    except Problem as problem:
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

    if not await turns.take(caller, client or receive):
        return
    held = True
    scope[GIVE_BACK] = give_back
    try:
        await app(scope, receive, sending)
    finally:
        give_back()

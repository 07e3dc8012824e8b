"""Limits the bytes of answers that wait for their clients: for each caller, and in all.

A large answer is sent in small parts, and each part waits until the client has taken the one before. A client that
takes nothing for the time `api_answer_timeout` is disconnected (`api/connections.py`). One that reads very slowly holds
its answer for long, so a caller who already has many such answers gets no other large one. When there is no room for an
answer, slow ones are cut off for it: no caller, and no group of callers, holds the room for long while others need it.
Answers that are made while they are sent have limits of their own (`api/downloads.py`, `api/events.py`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.caller_limit import caller_of
from silkline.api.problems import Problem

PART: Final = 64 << 10
EACH: Final = 32 << 20
IN_ALL: Final = 128 << 20
LITTLE: Final = 4 << 20  # a caller who holds no more has room of its own: two pages of a list fit in
FOR_LITTLE: Final = 32 << 20  # that room, in addition to IN_ALL
SLOW: Final = 10.0  # seconds after which an answer makes room for a caller who would hold less than its caller
VERY_SLOW: Final = 30.0  # seconds after which it makes room for everybody


@dataclass(eq=False, slots=True)
class HeldAnswer:
    """A large answer that is being sent."""

    caller: str
    size: int
    began: float
    cut_off: Callable[[], None]


class AnswerRoom:
    """The large answers that are being sent. Runs on the event loop only."""

    def __init__(self, *, most: int = IN_ALL, most_each: int = EACH, clock: Callable[[], float] = time.monotonic):
        self._most = most
        self._most_each = most_each
        self._clock = clock
        self._answers: dict[HeldAnswer, None] = {}  # oldest first
        self._held: Counter[str] = Counter()

    def enter(self, caller: str, size: int, cut_off: Callable[[], None]) -> HeldAnswer:
        """Count an answer until it leaves, or is cut off. Raises a `Problem` if there is no room.

        A caller without other large answers always gets one, however large it is, if there is room for it.
        """
        for slow in self._in_the_way(caller, size):
            slow.cut_off()
            self.leave(slow)
        answer = HeldAnswer(caller, size, self._clock(), cut_off)
        self._answers[answer] = None
        self._held[caller] += size
        return answer

    def resize(self, answer: HeldAnswer, size: int) -> None:
        """An answer has become smaller or larger. Nothing is refused."""
        if answer in self._answers:
            self._held[answer.caller] += size - answer.size
            answer.size = size

    def check(self, caller: str, size: int) -> None:
        """Raise a `Problem` if there is no room for an answer of this size now. For answers that take long to make."""
        self._in_the_way(caller, size)

    def leave(self, answer: HeldAnswer) -> None:
        """May be called twice for an answer."""
        if answer in self._answers:
            del self._answers[answer]
            self._held[answer.caller] -= answer.size
            if not self._held[answer.caller]:
                del self._held[answer.caller]

    def _in_the_way(self, caller: str, size: int) -> list[HeldAnswer]:
        """The slow answers that must be cut off to make room. Raises a `Problem` if that is not enough."""
        held = self._held[caller]
        if held and held + size > self._most_each:
            raise Problem("too-many", f"your answers that are being sent have more than {self._most_each:,} bytes")
        room = self._most + (FOR_LITTLE if held + size <= LITTLE else 0)
        slow = self._slow(self._held.total() + size - room, held + size) if self._answers else []
        if slow is None:
            raise Problem("busy", "the server is sending too many large answers; ask again later")
        return slow

    def _slow(self, missing: int, would_hold: int) -> list[HeldAnswer] | None:
        """Slow answers with as many bytes as are missing: very slow ones, then those of callers who hold the most.

        None: there are too few of them.
        """
        if missing <= 0:
            return []
        now, left, cut = self._clock(), Counter(self._held), list[HeldAnswer]()
        for answer in sorted(self._answers, key=lambda each: (now - each.began <= VERY_SLOW, -self._held[each.caller])):
            if missing <= 0:
                break
            fair = now - answer.began > SLOW and left[answer.caller] > would_hold
            if fair or now - answer.began > VERY_SLOW:
                cut.append(answer)
                left[answer.caller] -= answer.size
                missing -= answer.size
        return cut if missing <= 0 else None


class AnswerLimit:
    """Asks for room before it sends a large answer."""

    def __init__(self, app: ASGIApp, room: AnswerRoom | None = None) -> None:
        self._app = app
        self._room = room or AnswerRoom()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope.get("caller") is None:
            await self._app(scope, receive, send)
            return
        start: Message | None = None

        async def sending(message: Message) -> None:
            """The start of an answer is sent with its body, because the size of the body decides."""
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            first, start = start, None
            if first is None or message.get("more_body") or len(message.get("body", b"")) <= PART:
                if first is not None:
                    await send(first)
                await send_in_parts(send, message)
                return
            open_answer = anyio.CancelScope()
            try:
                answer = self._room.enter(caller_of(scope), len(message["body"]), open_answer.cancel)
            except Problem as problem:
                await problem.response()(scope, receive, send)
                return
            try:
                with open_answer:  # an answer that is cut off stays incomplete, so the server ends its connection
                    await send(first)
                    await send_in_parts(send, message)
            finally:
                self._room.leave(answer)

        await self._app(scope, receive, sending)


async def send_in_parts(send: Send, message: Message) -> None:
    """Send the body of a message in small parts. The server waits before each until the client has taken the rest."""
    body = message.get("body")
    if not isinstance(body, bytes) or len(body) <= PART:
        await send(message)
        return
    view = memoryview(body)
    for begin in range(0, len(body), PART):
        more = message.get("more_body", False) or begin + PART < len(body)
        await send({**message, "body": bytes(view[begin : begin + PART]), "more_body": more})

"""Limits the bytes of answers that wait for their clients: for each caller, and in all.

A large answer is sent in small parts, and each part waits until the client has taken the one before. A client that
takes nothing for the time `api_answer_timeout` is disconnected (`api/connections.py`). One that reads very slowly holds
its answer for long, so a caller who already has many such answers gets no other large one. Answers that are made while
they are sent have limits of their own (`api/downloads.py`, `api/events.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.caller_limit import caller_of
from silkline.api.problems import Problem

PART: Final = 64 << 10
EACH: Final = 32 << 20
IN_ALL: Final = 128 << 20


class AnswerLimit:
    """Runs on the event loop only. A caller without other large answers always gets one, however large it is."""

    def __init__(self, app: ASGIApp, *, most: int = IN_ALL, most_each: int = EACH) -> None:
        self._app = app
        self._most = most
        self._most_each = most_each
        self._held: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope.get("caller") is None:
            await self._app(scope, receive, send)
            return
        caller, size = caller_of(scope), 0
        start: Message | None = None

        async def sending(message: Message) -> None:
            """The start of an answer is sent with its body, because the size of the body decides."""
            nonlocal start, size
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                first, start = start, None
                if not message.get("more_body") and len(message.get("body", b"")) > PART:
                    problem = self._enter(caller, len(message["body"]))
                    if problem is not None:
                        await problem.response()(scope, receive, send)
                        return
                    size = len(message["body"])
                await send(first)
            await send_in_parts(send, message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if size:
                self._leave(caller, size)

    def _enter(self, caller: str, size: int) -> Problem | None:
        held, everything = self._held[caller], self._held.total()
        if held and held + size > self._most_each:
            return Problem("too-many", f"your answers that are being sent have more than {self._most_each:,} bytes")
        if everything and everything + size > self._most:
            return Problem("busy", "the server is sending too many large answers; ask again later")
        self._held[caller] += size
        return None

    def _leave(self, caller: str, size: int) -> None:
        self._held[caller] -= size
        if not self._held[caller]:
            del self._held[caller]


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

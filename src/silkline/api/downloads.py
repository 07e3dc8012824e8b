"""Downloads: answers that are made while they are sent. Their number is limited, and each holds little memory.

A piece is sent in small parts (`api/answer_limit.py`). A client that takes nothing for the time `api_answer_timeout` is
disconnected (`api/connections.py`), so its place becomes free. A piece is made in portions of little time, each in a
turn of its own (`api/caller_turns.py`): between them others have their turns, and a client that went away is noticed.
A download whose token is removed is cut off, as an event stream is, and so is one whose job is removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from typing import Final

import anyio
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from silkline.api.answer_limit import PART
from silkline.api.caller_limit import CallerLimit, caller_of
from silkline.api.caller_turns import GIVE_BACK, CallerTurns
from silkline.api.valid_callers import RegularCheck
from silkline.errors import NotFound

PORTION: Final = 0.25
# An empty piece means that there is nothing to send yet; what makes them yields it often.
Pieces = Generator[bytes, None, None]


class Downloads:
    """All downloads of this process."""

    def __init__(self, turns: CallerTurns, *, most: int = 32, most_each: int = 8, check_every: float = 10.0) -> None:
        self._limit = CallerLimit("downloads", "too-many-downloads", most=most, most_each=most_each)
        self._turns = turns
        self._check_every = check_every

    def answer(
        self, scope: Scope, pieces: Pieces, media_type: str, headers: Mapping[str, str] | None = None
    ) -> StreamingResponse:
        """The answer that sends these pieces. Raises a `Problem` if too many downloads are open."""
        self._limit.admit(scope)
        valid = RegularCheck(scope["still_valid"], self._check_every)
        return _Download(pieces, media_type, headers, self._turns, caller_of(scope), valid)


class _Download(StreamingResponse):
    def __init__(
        self,
        pieces: Pieces,
        media_type: str,
        headers: Mapping[str, str] | None,
        turns: CallerTurns,
        caller: str,
        valid: RegularCheck,
    ) -> None:
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._pieces = pieces
        self._turns = turns
        self._caller = caller
        self._valid = valid

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The request has a turn until its answer begins (`ReadLimit`), which a portion would wait for.
        scope[GIVE_BACK]()
        await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        start: Message | None
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        try:
            while (piece := await self._portion()) is not None:
                for begin in range(0, len(piece), PART):
                    if not await self._valid.holds():
                        return  # the answer stays incomplete, so the server ends its connection
                    if start is not None:
                        await send(start)
                        start = None
                    part = piece[begin : begin + PART]
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            if start is not None:
                await send(start)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except NotFound:  # the job was removed meanwhile
            if start is not None:
                raise  # nothing was sent yet: the client gets a problem document
        finally:  # frees what the pieces hold before the place becomes free
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._pieces.close)

    async def _portion(self) -> bytes | None:
        async with self._turns.turn(self._caller):
            return await run_in_threadpool(next_portion, self._pieces)


def next_portion(pieces: Pieces, clock: Callable[[], float] = time.monotonic) -> bytes | None:
    """The next piece that is not empty, or an empty one if none came within a short time. None at the end."""
    give_up = clock() + PORTION
    for piece in pieces:
        if piece or clock() >= give_up:
            return piece
    return None

"""Downloads: answers that are made while they are sent. Their number is limited, and each holds little memory.

A piece is sent in small parts (`api/answer_limit.py`). A client that takes nothing for the time `api_answer_timeout` is
disconnected (`api/connections.py`), so its place becomes free. A piece is made in portions of little time, each in a
turn of its own (`api/caller_turns.py`): between them others have their turns, and a client that went away is noticed.
A large row is made when there is room for it in memory (`DownloadRoom`), and few bytes of it are kept until it is sent.
A download whose token is removed is cut off, as an event stream is, and so is one whose job is removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator, Mapping
from typing import Final

import anyio
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from silkline.api.answer_limit import PART, AnswerRoom, HeldAnswer
from silkline.api.caller_limit import CallerLimit, caller_of
from silkline.api.caller_turns import GIVE_BACK, CallerTurns
from silkline.api.problems import Problem
from silkline.api.valid_callers import RegularCheck
from silkline.errors import NotFound
from silkline.export.large_rows import LARGE, LargeRow

PORTION: Final = 0.25
# An empty piece means that there is nothing to send yet; what makes them yields it often.
# What comes after a `LargeRow` takes much memory.
Pieces = Generator[bytes | LargeRow, None, None]
EACH: Final = 64 << 20
IN_ALL: Final = 160 << 20
LOOK_AGAIN: Final = 1.0  # seconds after which a slow download may have to make room


class DownloadRoom:
    """The memory of large rows that are being made or sent. Runs on the event loop only.

    A download waits for room, and holds none meanwhile. Slow ones are cut off for it, as other large answers are.
    """

    def __init__(self, *, most: int = IN_ALL, most_each: int = EACH, clock: Callable[[], float] = time.monotonic):
        self._room = AnswerRoom(most=most, most_each=most_each, clock=clock)
        self._changed = asyncio.Event()
        self.making = CallerTurns(most=1, most_each=1)
        """Making a row takes several times its memory, so one is made at a time."""

    async def enter(
        self, caller: str, size: int, cut_off: Callable[[], None], valid: RegularCheck
    ) -> HeldAnswer | None:
        """Wait until there is room. None: the caller is no longer valid."""
        while await valid.holds():
            try:
                return self._room.enter(caller, size, cut_off)
            except Problem:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), LOOK_AGAIN)
        return None

    def resize(self, held: HeldAnswer, size: int) -> None:
        self._room.resize(held, size)
        self._tell()

    def leave(self, held: HeldAnswer) -> None:
        self._room.leave(held)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Downloads:
    """All downloads of this process."""

    def __init__(
        self,
        turns: CallerTurns,
        *,
        most: int = 32,
        most_each: int = 8,
        check_every: float = 10.0,
        room: DownloadRoom | None = None,
    ) -> None:
        self._limit = CallerLimit("downloads", "too-many-downloads", most=most, most_each=most_each)
        self._turns = turns
        self._check_every = check_every
        self._room = room or DownloadRoom()

    def answer(
        self, scope: Scope, pieces: Pieces, media_type: str, headers: Mapping[str, str] | None = None
    ) -> StreamingResponse:
        """The answer that sends these pieces. Raises a `Problem` if too many downloads are open."""
        self._limit.admit(scope)
        valid = RegularCheck(scope["still_valid"], self._check_every)
        return _Download(pieces, media_type, headers, self._turns, caller_of(scope), valid, self._room)


class _Download(StreamingResponse):
    def __init__(
        self,
        pieces: Pieces,
        media_type: str,
        headers: Mapping[str, str] | None,
        turns: CallerTurns,
        caller: str,
        valid: RegularCheck,
        room: DownloadRoom,
    ) -> None:
        super().__init__((), media_type=media_type, headers=headers)
        self._pieces = pieces
        self._turns = turns
        self._caller = caller
        self._valid = valid
        self._room = room
        self._held: HeldAnswer | None = None
        self._cut_off: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The request has a turn until its answer begins (`ReadLimit`), which a portion would wait for.
        scope[GIVE_BACK]()
        await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        try:
            with (
                anyio.CancelScope() as open_answer
            ):  # one that is cut off stays incomplete, so the server ends its connection
                self._cut_off = open_answer.cancel
                await self._stream(send)
        finally:  # frees what the pieces hold before the place becomes free
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._pieces.close)
            self._leave()

    async def _stream(self, send: Send) -> None:
        start: Message | None
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        large: LargeRow | None = None
        is_new = False
        try:
            while (piece := await self._next(is_new)) is not None:
                if isinstance(piece, LargeRow):
                    large, is_new = piece, True
                    self._leave()
                    if not await self._enter(large.memory):
                        return
                    continue
                is_new = False
                if not await self._fits(len(piece) if len(piece) > LARGE else 0, large):
                    return
                for begin in range(0, len(piece), PART):
                    if not await self._valid.holds():
                        return
                    if start is not None:
                        await send(start)
                        start = None
                    part = piece[begin : begin + PART]
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                del piece
            if start is not None:
                await send(start)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except NotFound:  # the job was removed meanwhile
            if start is not None:
                raise  # nothing was sent yet: the client gets a problem document

    async def _next(self, makes_large_row: bool) -> bytes | LargeRow | None:
        if not makes_large_row:
            return await self._portion()
        async with self._room.making.turn(self._caller):
            return await self._portion()

    async def _portion(self) -> bytes | LargeRow | None:
        async with self._turns.turn(self._caller):
            return await run_in_threadpool(next_portion, self._pieces)

    async def _fits(self, sent: int, large: LargeRow | None) -> bool:
        """Count what is in memory while a piece is sent. False: the caller is no longer valid."""
        size = sent + (large.memory if large is not None else 0)
        if self._held is not None and size:
            self._room.resize(self._held, size)
        elif size:
            return await self._enter(size)
        else:
            self._leave()
        return True

    async def _enter(self, size: int) -> bool:
        self._held = await self._room.enter(self._caller, size, self._cut_off, self._valid)
        return self._held is not None

    def _leave(self) -> None:
        if self._held is not None:
            self._room.leave(self._held)
            self._held = None


def next_portion(pieces: Pieces, clock: Callable[[], float] = time.monotonic) -> bytes | LargeRow | None:
    """The next piece that is not empty, or an empty one if none came within a short time. None at the end."""
    give_up = clock() + PORTION
    for piece in pieces:
        if piece or clock() >= give_up:
            return piece
    return None

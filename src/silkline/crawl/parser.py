"""Parsers: processes that read pages for fetchers, and the fetcher's side of them.

A fetcher keeps each body until its reading has come back, so a parser that dies loses nothing: its pages go to another.
A page that was first in line when two parsers died is taken for the cause and given up.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import Final

import msgspec

from silkline.crawl.plan import Plan
from silkline.crawl.reading import Body, OnReading, PageReader, Reading
from silkline.crawl.wire import Wire

CRASHED: Final = "parser_crashed"
_MOST_DEATHS: Final = 2
_MOST_BYTES: Final = 64 << 20


class Line:
    """One parser, and the pages it was given, oldest first."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.wire: Wire | None = None
        self.waiting: dict[int, tuple[Body, OnReading]] = {}


class ParserPool:
    """Hands pages to parsers, the one with the fewest first. Fulfils `Reader`."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._backlog: deque[tuple[Body, OnReading]] = deque()
        self._deaths: dict[int, int] = {}
        self._bytes = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def full(self) -> bool:
        """More is waiting to be read than memory should hold."""
        return self._bytes > _MOST_BYTES

    def read(self, body: Body, on_done: OnReading) -> None:
        self._bytes += len(body.body)
        self._give(body, on_done)

    def adopt(self, index: int, end: socket.socket) -> None:
        """Another parser is there."""
        task = asyncio.get_running_loop().create_task(self._connect(Line(index), end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        self._closed = True
        for line in self._lines:
            if line.wire is not None:
                line.wire.close()

    async def _connect(self, line: Line, end: socket.socket) -> None:
        decoder = msgspec.msgpack.Decoder(Reading)
        line.wire = Wire(decoder, lambda reading: self._was_read(line, reading), lambda: self._lost(line))
        await line.wire.open(end)
        self._lines.append(line)
        while self._backlog:
            self._give(*self._backlog.popleft())

    def _give(self, body: Body, on_done: OnReading) -> None:
        line = min(self._lines, key=lambda line: len(line.waiting), default=None)
        if line is None or line.wire is None:
            self._backlog.append((body, on_done))
            return
        line.waiting[body.id] = (body, on_done)
        line.wire.send(body)

    def _was_read(self, line: Line, reading: Reading) -> None:
        if reading.id not in line.waiting:  # it answers what was not asked: it was taken over
            if line.wire is not None:
                line.wire.close()
            return
        body, on_done = line.waiting.pop(reading.id)
        self._finish(body, on_done, reading)

    def _finish(self, body: Body, on_done: OnReading, reading: Reading) -> None:
        self._deaths.pop(body.id, None)
        self._bytes -= len(body.body)
        on_done(reading)

    def _lost(self, line: Line) -> None:
        if line in self._lines:
            self._lines.remove(line)
        if self._closed:
            return
        waiting, line.waiting = list(line.waiting.values()), {}
        for place, (body, on_done) in enumerate(waiting):
            if place == 0:
                self._deaths[body.id] = deaths = self._deaths.get(body.id, 0) + 1
                if deaths >= _MOST_DEATHS:
                    self._finish(body, on_done, Reading(body.id, CRASHED, "two parsers died reading this page"))
                    continue
            self._give(body, on_done)


class Parser:
    """The parser's own side: reads what comes, in order, and sends back what it says."""

    def __init__(self, plan: Plan) -> None:
        self._reader = PageReader(plan)
        self._wires: set[Wire] = set()

    async def adopt(self, end: socket.socket) -> None:
        """Another fetcher is there."""
        wire = Wire(
            msgspec.msgpack.Decoder(Body),
            lambda body: wire.send(self._reader.reading_of(body)),
            lambda: self._wires.discard(wire),
        )
        self._wires.add(wire)
        await wire.open(end)

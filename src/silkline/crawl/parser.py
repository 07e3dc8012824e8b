"""Parsers: processes that read pages for fetchers, and the fetcher's side of them.

A fetcher keeps each body until it has the reading, so a parser that dies loses nothing: its pages go to another parser.
The mark (reading_marks.py) names the page that the parser was reading. That page is not given to a parser again.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from silkline.crawl.connection import Wire
from silkline.crawl.plan import Plan
from silkline.crawl.reading import Body, OnReading, PageReader, Reading, timed_reading
from silkline.metrics.instruments import tell_cpu
from silkline.reading_marks import PAGE, SITEMAP, ReadingMarks, clipped

_MOST_BYTES: Final = 64 << 20
_TELL_EVERY: Final = 2.0


class ParserQueue:
    """One parser, and the pages sent to it, oldest first."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.wire: Wire | None = None
        self.waiting: dict[int, tuple[Body, OnReading]] = {}


class ParserPool:
    """Sends pages to parsers. The parser with the fewest pages is next.

    `on_blamed` gets the page that a parser was reading when it died.
    """

    def __init__(self, marks: ReadingMarks) -> None:
        self._marks = marks
        self.on_blamed: Callable[[Body, OnReading], None] = self.read
        self._lines: list[ParserQueue] = []
        self._backlog: deque[tuple[Body, OnReading]] = deque()
        self._bytes = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Pages that wait for a parser, or are in one."""
        return len(self._backlog) + sum(len(line.waiting) for line in self._lines)

    @property
    def full(self) -> bool:
        """More pages wait to be read than memory should hold."""
        return self._bytes > _MOST_BYTES

    def read(self, body: Body, on_done: OnReading) -> None:
        self._bytes += len(body.body)
        self._give(body, on_done)

    def adopt(self, slot: int, end: socket.socket) -> None:
        """Add a parser. It marks its inputs in this slot."""
        task = asyncio.get_running_loop().create_task(self._connect(ParserQueue(slot), end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        self._closed = True
        for line in self._lines:
            if line.wire is not None:
                line.wire.close()

    async def _connect(self, line: ParserQueue, end: socket.socket) -> None:
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

    def _was_read(self, line: ParserQueue, reading: Reading) -> None:
        if reading.id not in line.waiting:  # it answered a request that we did not send: an attacker may control it
            if line.wire is not None:
                line.wire.close()
            return
        body, on_done = line.waiting.pop(reading.id)
        self._bytes -= len(body.body)
        on_done(reading)

    def _lost(self, line: ParserQueue) -> None:
        if line in self._lines:
            self._lines.remove(line)
        if self._closed:
            return
        waiting, line.waiting = list(line.waiting.values()), {}
        mark = self._marks.mark_of(line.slot)
        for body, on_done in waiting:
            if mark is not None and mark.name == clipped(body.url):
                self._bytes -= len(body.body)
                self.on_blamed(body, on_done)
            else:
                self._give(body, on_done)


class Parser:
    """The parser's own side: reads pages in order of arrival, and sends back the readings."""

    def __init__(self, plan: Plan, marks: ReadingMarks, slot: int) -> None:
        self._reader = PageReader(plan)
        self._slot = marks.slot(slot)
        self._wires: set[Wire] = set()
        self._told_at = 0.0

    async def adopt(self, end: socket.socket) -> None:
        """Add a fetcher."""
        wire = Wire(
            msgspec.msgpack.Decoder(Body),
            lambda body: wire.send(self._read(body)),
            lambda: self._wires.discard(wire),
        )
        self._wires.add(wire)
        await wire.open(end)

    def _read(self, body: Body) -> Reading:
        self._slot.begin(SITEMAP if body.sitemap else PAGE, body.url)
        reading = timed_reading(self._reader, body)
        self._slot.end()
        if (now := time.monotonic()) - self._told_at > _TELL_EVERY:
            self._told_at = now
            tell_cpu()
        return reading

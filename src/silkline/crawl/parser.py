"""Parsers: processes that read pages for fetchers, and the fetcher's side of them.

A fetcher keeps each body until it has the reading, so a parser that dies loses nothing: its pages go to another parser.
The mark (reading_marks.py) names the page that the parser was reading. That page is not given to a parser again.

A parser gets few pages at once. The others wait in the fetcher, where domains and addresses take turns
(parser_turns.py): slow pages of many hosts must not stop the pages of others.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from silkline.crawl.connection import Wire
from silkline.crawl.foreign_readings import is_sound
from silkline.crawl.parser_turns import ParserTurns
from silkline.crawl.plan import Plan
from silkline.crawl.reading import Body, OnReading, PageReader, Reading, timed_reading
from silkline.crawl.reading_turns import Sender, sender_of
from silkline.metrics.instruments import tell_cpu
from silkline.model.url import host_of
from silkline.reading_marks import PAGE, SITEMAP, ReadingMarks, clipped

_MOST_BYTES: Final = 64 << 20
MOST_AT_PARSER: Final = 24
"""Pages of a fetcher that a parser has at once while its pages are quick: enough that it seldom waits for the next."""
FEW_AT_PARSER: Final = 4
"""The same at first, and after a slow page: what was sent keeps its order. Each quick page allows one more."""
_ROUND: Final = 0.005
"""Seconds. Several quick pages are read in one round, so that their readings are sent together."""
_TELL_EVERY: Final = 2.0


class WaitingPage(NamedTuple):
    """`read_elsewhere` is called when the page has waited for its turn. True: another reader has taken it."""

    body: Body
    on_done: OnReading
    read_elsewhere: Callable[[], bool]


class ParserQueue:
    """One parser, and the pages sent to it, oldest first."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.wire: Wire | None = None
        self.waiting: dict[int, WaitingPage] = {}
        self.most = FEW_AT_PARSER


class ParserPool:
    """Sends pages to parsers. The parser with the fewest pages is next.

    `on_blamed` gets the page that a parser was reading when it died, or for which it sent an invalid reading.
    `on_lost` gets the slot of a parser whose connection ended. It may still be running.
    `sender_of` says to whom a host belongs.
    """

    def __init__(self, marks: ReadingMarks) -> None:
        self._marks = marks
        self.on_blamed: Callable[[Body, OnReading], None] = self.read
        self.on_lost: Callable[[int], None] = lambda slot: None
        self.sender_of: Callable[[str], Sender] = sender_of
        self._lines: list[ParserQueue] = []
        self._turns: ParserTurns[WaitingPage] = ParserTurns()
        self._bytes = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Pages that wait for a parser, or are in one."""
        return len(self._turns) + sum(len(line.waiting) for line in self._lines)

    @property
    def full(self) -> bool:
        """More pages wait to be read than memory should hold."""
        return self._bytes > _MOST_BYTES

    def read(self, body: Body, on_done: OnReading, read_elsewhere: Callable[[], bool] = lambda: False) -> None:
        self._bytes += len(body.body)
        page = WaitingPage(body, on_done, read_elsewhere)
        line = None if self._turns else self._free_line()
        if line is None:
            self._wait(page)
        else:
            _send(line, page)

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
        self._give()

    def _wait(self, page: WaitingPage) -> None:
        self._turns.add(self.sender_of(host_of(page.body.url)), page)

    def _free_line(self) -> ParserQueue | None:
        free = (line for line in self._lines if len(line.waiting) < line.most)
        return min(free, key=lambda line: len(line.waiting), default=None)

    def _give(self) -> None:
        """Send as many pages as the parsers may get."""
        while self._turns and (line := self._free_line()) is not None:
            page = self._turns.take()
            if page.read_elsewhere():
                self._bytes -= len(page.body.body)
            else:
                _send(line, page)

    def _was_read(self, line: ParserQueue, reading: Reading) -> None:
        # An attacker may control a parser that sends something invalid, or an answer to a request that we did not send.
        asked, sound = reading.id in line.waiting, is_sound(reading)
        if line.wire is not None and not (asked and sound):
            line.wire.cut_off()
        if asked:
            body, on_done, _ = line.waiting.pop(reading.id)
            self._bytes -= len(body.body)
            if not sound:
                self.on_blamed(body, on_done)
                return
            line.most = FEW_AT_PARSER if reading.seconds else min(line.most + 1, MOST_AT_PARSER)
            if reading.seconds:
                self._turns.was_slow(self.sender_of(host_of(body.url)), reading.seconds)
            on_done(reading)
            self._give()

    def _lost(self, line: ParserQueue) -> None:
        if line in self._lines:
            self._lines.remove(line)
        if self._closed:
            return
        self.on_lost(line.slot)
        waiting, line.waiting = list(line.waiting.values()), {}
        mark = self._marks.mark_of(line.slot)
        for page in waiting:
            if mark is not None and mark.name == clipped(page.body.url):
                self._bytes -= len(page.body.body)
                self.on_blamed(page.body, page.on_done)
            else:
                self._wait(page)
        self._give()


def _send(line: ParserQueue, page: WaitingPage) -> None:
    line.waiting[page.body.id] = page
    if line.wire is not None:
        line.wire.send(page.body)


class Parser:
    """The parser's own side: reads pages in order of arrival, and sends back the readings.

    It reads only for a moment in each round of the event loop: so readings are sent soon, and a `Ping` is answered.
    """

    def __init__(self, plan: Plan, marks: ReadingMarks, slot: int) -> None:
        self._reader = PageReader(plan, careful=True)
        self._slot = marks.slot(slot)
        self._loop = asyncio.get_running_loop()
        self._wires: set[Wire] = set()
        self._waiting: deque[tuple[Wire, Body]] = deque()
        self._told_at = 0.0

    async def adopt(self, end: socket.socket) -> None:
        """Add a fetcher."""
        wire = Wire(
            msgspec.msgpack.Decoder(Body), lambda body: self._received(wire, body), lambda: self._wires.discard(wire)
        )
        self._wires.add(wire)
        await wire.open(end)

    def _received(self, wire: Wire, body: Body) -> None:
        if not self._waiting:
            self._loop.call_soon(self._read_some)
        self._waiting.append((wire, body))

    def _read_some(self) -> None:
        until = time.monotonic() + _ROUND
        while self._waiting:
            wire, body = self._waiting.popleft()
            if wire in self._wires:
                wire.send(self._read(body))
            if self._waiting and time.monotonic() >= until:
                self._loop.call_soon(self._read_some)
                return

    def _read(self, body: Body) -> Reading:
        self._slot.begin(SITEMAP if body.sitemap else PAGE, body.url)
        reading = timed_reading(self._reader, body)
        self._slot.end()
        if (now := time.monotonic()) - self._told_at > _TELL_EVERY:
            self._told_at = now
            tell_cpu()
        return reading

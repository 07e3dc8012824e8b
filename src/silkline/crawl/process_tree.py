"""The processes of a crawl: starts fetchers and parsers, connects them by sockets, detects which ones died.

Each child gets two sockets: a wire for messages, and a door over which the leader passes it the ends of further
sockets. A fetcher and a parser have a direct socket; bodies never pass through the leader.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from silkline.confine.environment import scrubbed
from silkline.crawl.connection import Wire
from silkline.crawl.fetcher import Fetcher
from silkline.crawl.messages import FromFetcher, Ping, Pong, StartFetcher, from_fetcher
from silkline.crawl.parser import ParserPool
from silkline.crawl.plan import Plan
from silkline.crawl.process_end import EXIT_DISK_FULL
from silkline.fetch.descriptors import EXHAUSTED, WAIT
from silkline.metrics.instruments import PROCESS_DEATHS
from silkline.metrics.process import claim_for_child
from silkline.reading_marks import SLOTS, Mark, ReadingMarks

Made = TypeVar("Made")
_YOUNG: Final = 10.0
_LONGEST_WAIT: Final = 5.0
_LONGEST_LOOK: Final = 1.0
_SILENT_READS: Final = 3
_SHORTEST_SILENCE: Final = 3.0
_LONGEST_START: Final = 60.0
_FIRST_SLOT: Final = 2  # the leader has the first pair


class Seat(Protocol):
    """A fetcher, as the leader sees it. `ready`: it has received the state it needs."""

    index: int
    pid: int
    ready: bool
    blamed: bool
    """It died while it read an input, and that input was blamed."""

    def send(self, message: Any) -> None: ...
    async def filled_disk(self) -> bool:
        """Whether it has ended because the disk was full."""
        ...

    def close(self) -> None: ...


class LocalSeat:
    """The leader's own fetcher."""

    def __init__(self, fetcher: Fetcher) -> None:
        self.index = 0
        self.pid = os.getpid()
        self.ready = False
        self.blamed = False
        self.fetcher = fetcher

    def send(self, message: Any) -> None:
        self.fetcher.receive(message)

    async def filled_disk(self) -> bool:
        return False  # it ends with the leader

    def close(self) -> None:
        self.fetcher.close()


class CrawlProcess:
    """A process with its wire and its door."""

    def __init__(self, role: str, index: int, marks: ReadingMarks, slot: int) -> None:
        self.role = role
        self.slot = slot
        self.index = index
        self.ready = False
        self.closed = False
        self.blamed = False
        self.overdue = False
        self.answered = False
        """It has answered a `Ping` before: it has started."""
        self.asked = False
        self.silent = 0.0
        """For how long it has not answered the last `Ping`."""
        self.started_at = time.monotonic()
        self.wire: Wire | None = None
        with contextlib.ExitStack() as if_it_fails:
            self._socket, theirs = socket.socketpair()
            if_it_fails.enter_context(self._socket)
            if_it_fails.enter_context(theirs)
            self.door, their_door = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if_it_fails.enter_context(self.door)
            if_it_fails.enter_context(their_door)
            self._start(role, theirs, their_door, marks)
            self.pid = self.process.pid
            if_it_fails.pop_all()

    def _start(self, role: str, theirs: socket.socket, their_door: socket.socket, marks: ReadingMarks) -> None:
        fds = [theirs.fileno(), their_door.fileno(), marks.descriptor]
        arguments = [role, *map(str, fds), str(os.getpid())]
        with theirs, their_door, contextlib.ExitStack() as after_start:
            meter = claim_for_child(role)
            if meter is not None and meter.descriptor is not None:
                after_start.callback(meter.close)
                fds.append(meter.descriptor)
                arguments += [str(meter.descriptor), meter.name]
            self.process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", "silkline.crawl.child_process", *arguments],
                env=scrubbed(),
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
            )

    async def connect(self, on_message: Callable[[Any], None], on_close: Callable[[], None]) -> None:
        def heard(message: FromFetcher) -> None:
            if isinstance(message, Pong):
                self.asked, self.answered, self.silent = False, True, 0.0
            else:
                on_message(message)

        self.wire = Wire(from_fetcher(), heard, on_close)
        await self.wire.open(self._socket)

    def send(self, message: Any) -> None:
        if self.wire is not None:
            self.wire.send(message)

    def ask(self) -> None:
        """Ask whether it is running. Its first answer says that it has started."""
        self.asked = True
        self.send(Ping())

    def hand(self, number: int, end: socket.socket) -> None:
        """Pass the child an end of a socket. `number` says which process has the other end."""
        try:
            socket.send_fds(self.door, [number.to_bytes(4, "big")], [end.fileno()])
        except OSError:  # it is dead; its replacement gets new sockets
            return

    async def filled_disk(self) -> bool:
        return await asyncio.get_running_loop().run_in_executor(None, self.process.wait) == EXIT_DISK_FULL

    def close(self) -> None:
        self.closed = True
        if self.wire is not None:
            self.wire.close()
        self.door.close()
        if self.process.poll() is None:
            self.process.kill()


class ProcessTree:
    """All children of one leader. `on_message` and `on_death` report fetchers; parsers are replaced here.

    `on_blame` gets the input that a child was reading when it died.
    """

    def __init__(
        self,
        plan: Plan,
        marks: ReadingMarks,
        on_message: Callable[[Seat, FromFetcher], None],
        on_death: Callable[[Seat], None],
        on_blame: Callable[[Mark], None],
        start_with: Callable[[int, int], StartFetcher],
        warn: Callable[..., None],
    ) -> None:
        self._plan = plan
        self._marks = marks
        self._next_slot = _FIRST_SLOT
        self._on_blame = on_blame
        self._start_with = start_with
        self._on_message = on_message
        self._on_death = on_death
        self._warn = warn
        self._fetchers: dict[int, CrawlProcess] = {}
        self._parsers: dict[int, CrawlProcess] = {}
        self._dead: set[CrawlProcess] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._young_deaths: dict[int, int] = {}
        self._closing = False
        self._looked_at = time.monotonic()
        self.pool = ParserPool(marks) if plan.parsers else None
        if self.pool is not None:
            self.pool.on_lost = self.end_parser

    async def start(self) -> list[Seat]:
        """Start fetchers 1 to N-1, and all parsers."""
        for index in range(self._plan.parsers):
            await self._start_parser(index)
        return [await self.start_fetcher(index) for index in range(1, self._plan.fetchers)]

    async def start_fetcher(self, index: int) -> Seat:
        child = await self._with_files(lambda: CrawlProcess("fetcher", index, self._marks, self._free_slots()))
        self._fetchers[index] = child
        await child.connect(lambda message: self._on_message(child, message), lambda: self._fetcher_ended(child))
        child.send(self._start_with(index, child.slot))
        child.ask()
        for parser in list(self._parsers.values()):
            await self._join(child, parser)
        return child

    async def _start_parser(self, index: int) -> None:
        child = await self._with_files(lambda: CrawlProcess("parser", index, self._marks, self._free_slots()))
        self._parsers[index] = child
        await child.connect(lambda message: None, lambda: self._parser_ended(child))
        child.send(self._start_with(index, child.slot))
        child.ask()
        for fetcher in (None, *self._fetchers.values()):
            await self._join(fetcher, child)

    async def _with_files(self, make: Callable[[], Made]) -> Made:
        """Call a function that opens files. If the limit of open files is reached, wait and try again."""
        told = False
        while True:
            try:
                return make()
            except OSError as error:
                if error.errno not in EXHAUSTED or self._closing:
                    raise
                if not told:
                    self._warn("no more files can be opened: waiting for free ones to start another process")
                told = True
                await asyncio.sleep(WAIT)

    async def _join(self, fetcher: CrawlProcess | None, parser: CrawlProcess) -> None:
        """Connect a fetcher (None: the leader's own) and a parser with a socket."""
        one, other = await self._with_files(socket.socketpair)
        parser.hand(fetcher.index if fetcher is not None else 0, one)
        one.close()
        if fetcher is not None:
            fetcher.hand(parser.slot, other)
            other.close()
        elif self.pool is not None:
            self.pool.adopt(parser.slot, other)

    def _fetcher_ended(self, child: CrawlProcess) -> None:
        self._end_child(child)
        if not self._closing and self._fetchers.get(child.index) is child:
            del self._fetchers[child.index]
            PROCESS_DEATHS.add(1, child.role)
            self._blame(child)
            self._on_death(child)

    def end_parser(self, slot: int) -> None:
        """Kill the parser with this slot, if it is still running: a fetcher does not trust it. Another replaces it."""
        for child in self._parsers.values():
            if child.slot == slot:
                child.process.kill()

    def _parser_ended(self, child: CrawlProcess) -> None:
        self._end_child(child)
        if not self._closing and self._parsers.get(child.index) is child:
            del self._parsers[child.index]
            PROCESS_DEATHS.add(1, child.role)
            self._warn("parser %d died; starting another", child.index)
            self._blame(child)
            task = asyncio.get_running_loop().create_task(self._replace_parser(child))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _replace_parser(self, dead: CrawlProcess) -> None:
        """Start another parser: at once, or after a delay if parsers die repeatedly soon after their start."""
        lived = time.monotonic() - dead.started_at
        deaths = self._young_deaths[dead.index] = self._young_deaths.get(dead.index, 0) + 1 if lived < _YOUNG else 0
        await asyncio.sleep(min(0.05 * 2**deaths, _LONGEST_WAIT) if deaths > 1 else 0)
        if not self._closing:
            await self._start_parser(dead.index)

    def end_overdue(self, seconds: float) -> None:
        """Kill each process that has been reading one input for longer than this. Its end is handled like any other."""
        for child in (*self._fetchers.values(), *self._parsers.values()):
            mark = self._marks.mark_of(child.slot)
            if mark is None or mark.pid != child.process.pid or child.process.returncode is not None:
                continue
            if not child.overdue and time.monotonic() - mark.started > seconds:
                child.overdue = True
                self._warn("%s %d read for more than %g s and is killed: %s", child.role, child.index, seconds, mark)
                child.process.kill()
        self._end_silent(seconds)

    def _end_silent(self, seconds: float) -> None:
        """Kill each process that does not answer for several times the time limit of one input: it is stopped, or
        hangs.

        A process that is stopped between two inputs has no mark. Time in which the leader itself was stopped does not
        count, and a process that is still starting has more time.
        """
        now = time.monotonic()
        passed, self._looked_at = min(now - self._looked_at, _LONGEST_LOOK), now
        for child in (*self._fetchers.values(), *self._parsers.values()):
            if child.overdue or child.process.returncode is not None:
                continue
            if not child.asked:
                child.ask()
                continue
            child.silent += passed
            most = _SILENT_READS * seconds + (_SHORTEST_SILENCE if child.answered else _LONGEST_START)
            if child.silent > most:
                child.overdue = True
                self._warn("%s %d did not answer for %g s and is killed", child.role, child.index, most)
                child.process.kill()

    def _blame(self, child: CrawlProcess) -> None:
        mark = self._marks.mark_of(child.slot)
        if mark is not None and mark.pid == child.process.pid:
            child.blamed = True
            self._on_blame(mark)

    def _free_slots(self) -> int:
        """The first of two slots that no living child uses. Slots of dead children are reused late."""
        used = {child.slot for child in (*self._fetchers.values(), *self._parsers.values())}
        while True:
            slot = self._next_slot
            self._next_slot = slot + 2 if slot + 2 < SLOTS else _FIRST_SLOT
            if slot not in used:
                return slot

    def _end_child(self, child: CrawlProcess) -> None:
        """Kill what is left of a child, and reap it at once, so that it does not stay as a zombie."""
        child.close()
        if not self._closing and child not in self._dead:
            self._dead.add(child)
            task = asyncio.get_running_loop().create_task(self._reap(child))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reap(self, child: CrawlProcess) -> None:
        await asyncio.get_running_loop().run_in_executor(None, child.process.wait)
        self._dead.discard(child)

    async def close(self) -> None:
        """Kill every child, and wait until it has exited."""
        self._closing = True
        children = [*self._fetchers.values(), *self._parsers.values(), *self._dead]
        for child in children:
            child.close()
        if self.pool is not None:
            self.pool.close()
        loop = asyncio.get_running_loop()
        for child in children:
            await loop.run_in_executor(None, child.process.wait)

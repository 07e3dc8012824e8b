"""The owner's side of the reader process: it reads risky inputs one at a time, with limits on time and memory.

Time is CPU time of the reader, so that an input does not fail because the machine is loaded. Domains, addresses and
hosts take turns (reading_turns.py): those whose inputs take long, or kill readers, come last.

The bytes that wait are limited. If there is no room, the input that would be read last is given back (`NO_ROOM`), so
that its owner fetches it again later. Nobody else waits for that.

If a reader dies or takes too long, only its current input is affected. The input gets one more try, alone in a new
reader. If it had already killed a process before, it is given up instead. Must be created and used inside an event
loop.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from silkline.crawl.foreign_readings import is_sound
from silkline.crawl.messages import UNREADABLE
from silkline.crawl.plan import Plan
from silkline.crawl.reader_link import ReaderLink, ReaderServer
from silkline.crawl.reader_process import (
    ANSWERS,
    EXIT_MEMORY,
    HEAD,
    LEAVES,
    ReadingTask,
    fork_reader,
    needs_more,
)
from silkline.crawl.reading_turns import ReadingTurns, Sender, sender_of
from silkline.reading_marks import ReadingMarks

_MOST_BYTES: Final = 64 << 20
LEAST_BYTES: Final = 64 << 10
"""What an input counts at least, so that the number of inputs that wait is limited too."""
_START_WAITS: Final = (0.1, 1.0, 5.0, 15.0)
# A domain whose inputs kill readers repeatedly gets less time for each input, so that a thousand of them finish too.
_PATIENT_UNTIL: Final = 3
_LEAST_SECONDS: Final = 0.5
_LEAST_SECONDS_FOR_MIB: Final = 0.5
_INVALID: Final = "the reader sent an answer that is not valid, and was killed"


class ReaderDied(NamedTuple):
    """Why there is no answer, as text for people."""

    why: str


class NoRoom(Enum):
    """The input was not read, because too many bytes wait before it."""

    NO_ROOM = "no_room"


NO_ROOM: Final = NoRoom.NO_ROOM
OnAnswer = Callable[[Any], None]
"""Gets the answer to the task, `ReaderDied`, or, if it may, `NO_ROOM`."""


class QueuedInput(NamedTuple):
    task: ReadingTask
    size: int
    blamed: bool
    may_wait: bool
    on_answer: OnAnswer

    @property
    def held(self) -> int:
        """The bytes that it counts."""
        return max(self.size, LEAST_BYTES)


class IsolatedReader:
    """One reader process. It is started when it is first needed, and again after it died.

    With `here` it is a copy of this process: cheap for a command that reads one page. Otherwise a separate server
    process forks it. That server knows nothing about the job except how to read.
    """

    def __init__(self, plan: Plan, marks: ReadingMarks, slot: int, *, here: bool = False) -> None:
        self._plan = plan_for_readers(plan)
        self._seconds = plan.tuning.read_seconds
        self._memory = plan.tuning.read_memory
        self._most_bytes = max(_MOST_BYTES, 2 * plan.tuning.max_body)  # one is read, and the next one waits
        self._marks = marks
        self._slot = slot
        self._here = here
        self._turns: ReadingTurns[QueuedInput] = ReadingTurns()
        self._bytes = 0
        self.waiting = 0
        """Inputs that wait or are being read."""
        self._deaths: Counter[str] = Counter()
        self._reader: ReaderLink | None = None
        self._server: ReaderServer | None = None
        self._task: asyncio.Task[None] | None = None
        self._prepared = False
        self._closed = False

    @property
    def room(self) -> int:
        """Bytes that may come in addition to those that wait."""
        return self._most_bytes - self._bytes

    def place(self, host: str, address: str) -> float:
        """When a further input of a host would be read. Small is soon."""
        return self._turns.place(sender_of(host, address))

    def prepare(self) -> None:
        """Start the reader server now, as a copy of this process, because no process can be started later."""
        self._server = ReaderServer(self._plan, self._marks, self._slot, self._memory, forked=True)
        self._prepared = True

    def submit(
        self,
        task: ReadingTask,
        size: int,
        host: str,
        on_answer: OnAnswer,
        *,
        address: str = "",
        blamed: bool = False,
        may_wait: bool = False,
    ) -> None:
        """Queue the input. `blamed`: it killed a process before, and gets one try only. `may_wait`: the answer may be
        `NO_ROOM`, at once or later."""
        if self._closed:
            return
        sender, waiting = sender_of(host, address), QueuedInput(task, size, blamed, may_wait, on_answer)
        if may_wait and not self._make_room(sender, waiting.held):
            on_answer(NO_ROOM)
            return
        self._bytes += waiting.held
        self.waiting += 1
        self._turns.add(sender, waiting)
        # A finished task may still be in `_task`: an input submitted at that moment needs a new task.
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._ended)

    def _make_room(self, sender: Sender, size: int) -> bool:
        """Give back inputs that would be read after this one, until it has room. False: there are too few of them."""
        place = self._turns.place(sender)
        while self.waiting and self._bytes + size > self._most_bytes:
            last = self._turns.drop_last(place, size, lambda waiting: waiting.held if waiting.may_wait else 0)
            if last is None:
                return False
            self._left(last)
            last.on_answer(NO_ROOM)
        return True

    def _left(self, waiting: QueuedInput) -> None:
        self._bytes -= waiting.held
        self.waiting -= 1

    async def read(self, task: ReadingTask, size: int, host: str, *, address: str = "", blamed: bool = False) -> Any:
        """The answer to the task, or `ReaderDied`."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(value: Any) -> None:
            if not answered.done():
                answered.set_result(value)

        self.submit(task, size, host, answer, address=address, blamed=blamed)
        return await answered

    def close(self) -> None:
        self._closed = True
        self._turns.clear()
        if self._task is not None:
            self._task.cancel()
        if self._reader is not None:
            self._reader.end()
            self._reader = None
        if self._server is not None:
            self._server.close()

    async def _work(self) -> None:
        while self._turns:
            sender, waiting = self._turns.take()
            answer = await self._tried(sender, waiting)
            self._left(waiting)
            if not self._closed:
                waiting.on_answer(answer)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "the isolated reader failed", "exception": error})

    async def _tried(self, sender: Sender, waiting: QueuedInput) -> Any:
        if self._here and self._reader is not None and needs_more(waiting.task):
            await self._dismiss(self._reader)
        frame = msgspec.msgpack.encode(waiting.task)
        head = len(frame).to_bytes(HEAD - 1, "big") + b"\0"
        tries = 1 if waiting.blamed or self._deaths[sender.domain] >= _PATIENT_UNTIL else 2
        why = ""
        for _ in range(tries):
            seconds = self._seconds_for(sender.domain, waiting.size)
            answer, why, took = await self._once(head + frame, seconds, ANSWERS[type(waiting.task)])
            self._turns.took(sender, took)
            if not why:
                return answer
            self._deaths[sender.domain] += 1
        return ReaderDied(why)

    async def _dismiss(self, reader: ReaderLink) -> None:
        self._reader = None
        reader.kill()
        await reader.status()

    def _seconds_for(self, domain: str, size: int) -> float:
        """The time limit. It falls with the deaths of the domain, but a normal input of this size can always be read
        in it."""
        deaths = self._deaths[domain]
        if deaths < _PATIENT_UNTIL:
            return self._seconds
        least = _LEAST_SECONDS + _LEAST_SECONDS_FOR_MIB * size / (1 << 20)
        return max(min(least, self._seconds), self._seconds / deaths)

    async def _once(self, frame: bytes, seconds: float, kind: Any) -> tuple[Any, str, float]:
        """The answer of one reader, or the reason why there is none, and the seconds that count for it. A death counts
        like the whole time limit."""
        try:
            reader = self._reader = self._reader or await self._started()
        except (OSError, TimeoutError) as error:
            if self._prepared:  # this process cannot start another server, but the process that replaces it can
                raise
            return None, f"no reader could be started: {error}", 0.0
        try:
            meant, data, took = await reader.exchange_within(frame, seconds)
        except TimeoutError:
            await self._dismiss(reader)
            return None, f"time: it was not read within {seconds:g} s", seconds
        except OSError:
            self._reader = None
            return None, self._cause(await reader.status()), seconds
        if meant == LEAVES:  # its memory has grown too much: it exits, and a new reader replaces it
            self._reader = None
            await reader.status()
        answer = _decoded(data, kind)
        if answer is not None:
            return answer, "", took
        if self._reader is not None:
            await self._dismiss(reader)
        return None, _INVALID, seconds

    def _cause(self, status: int) -> str:
        limit = f"{self._memory >> 20} MiB"
        if os.WIFEXITED(status):
            code = os.WEXITSTATUS(status)
            return f"memory: it needs more than {limit}" if code == EXIT_MEMORY else f"the reader crashed (exit {code})"
        return f"the reader was killed by signal {os.WTERMSIG(status)} (its memory limit is {limit})"

    async def _started(self) -> ReaderLink:
        """Start a reader. If the machine has no room for a process now, try again a few times."""
        for wait in () if self._prepared else _START_WAITS:
            try:
                return await self._start()
            except (OSError, TimeoutError):
                if self._server is not None:
                    self._server.close()
                    self._server = None
                await asyncio.sleep(wait)
        return await self._start()

    async def _start(self) -> ReaderLink:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            if self._here:
                pid = fork_reader(theirs, self._plan, self._marks, self._slot, self._memory, loaded=False)
                return ReaderLink(ours, pid, None)
            if self._server is None:
                self._server = ReaderServer(self._plan, self._marks, self._slot, self._memory)
            return ReaderLink(ours, await self._server.fork(theirs), self._server)


def _decoded(data: bytes, kind: Any) -> Any:
    """The answer of a reader. None: it is not valid, so an attacker may control the reader."""
    try:
        answer = msgspec.msgpack.decode(data, type=kind)
    except UNREADABLE:
        return None
    return answer if is_sound(answer) else None


def plan_for_readers(plan: Plan) -> Plan:
    """The plan without the parts that a reader does not need: credentials, addresses and rules of the job."""
    return msgspec.structs.replace(
        plan, include=(), exclude=(), exclude_hosts=(), proxy="", allow_private=(), origin_headers={}, archive=None
    )

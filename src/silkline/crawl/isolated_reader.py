"""The owner's side of the reader process: it reads risky inputs one at a time, with limits on time and memory.

Time is CPU time of the reader, so that an input does not fail because the machine is loaded. Hosts take turns: an input
waits for one input of each other host, not for all inputs that one host sent before.

If a reader dies or takes too long, only its current input is affected. The input gets one more try, alone in a new
reader. If it had already killed a process before, it is given up instead. Must be created and used inside an event
loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from silkline.confine.environment import scrubbed
from silkline.crawl.plan import Plan
from silkline.crawl.reader_process import (
    ANSWERS,
    EXIT_MEMORY,
    HEAD,
    LEAVES,
    ReadingTask,
    fork_reader,
    fork_server,
    needs_more,
)
from silkline.reading_marks import ReadingMarks

_MOST_BYTES: Final = 64 << 20
_CONTROL_BYTES: Final = 64
_STATUS_SECONDS: Final = 2.0
_START_SECONDS: Final = 60.0
_LOOK_AGAIN: Final = 0.02
_CPU_CLOCK: Final = 2
"""The kernel's CPUCLOCK_SCHED: together with the complement of a pid it is the clock id of that process."""
_START_WAITS: Final = (0.1, 1.0, 5.0, 15.0)
# A host whose inputs kill readers repeatedly gets less time for each input, so that a thousand of them finish as well.
_PATIENT_UNTIL: Final = 3
_LEAST_SECONDS: Final = 0.5
_LEAST_SECONDS_FOR_MIB: Final = 0.5
_WALL_FACTOR: Final = 4
"""The limit on wall time, as a multiple of the CPU limit: for a reader that waits, or on a loaded machine."""


class ReaderDied(NamedTuple):
    """Why there is no answer, as text for people."""

    why: str


OnAnswer = Callable[[Any], None]
"""Gets the answer to the task, or `ReaderDied`."""


class QueuedInput(NamedTuple):
    task: ReadingTask
    size: int
    host: str
    blamed: bool
    on_answer: OnAnswer


class IsolatedReader:
    """One reader process. It is started when it is first needed, and again after it died.

    With `here` it is a copy of this process: cheap for a command that reads one page. Otherwise a separate server
    process forks it. That server knows nothing about the job except how to read.
    """

    def __init__(self, plan: Plan, marks: ReadingMarks, slot: int, *, here: bool = False) -> None:
        self._plan = plan_for_readers(plan)
        self._seconds = plan.tuning.read_seconds
        self._memory = plan.tuning.read_memory
        self._marks = marks
        self._slot = slot
        self._here = here
        self._queues: OrderedDict[str, deque[QueuedInput]] = OrderedDict()
        self._bytes = 0
        self._deaths: Counter[str] = Counter()
        self._reader: ReaderLink | None = None
        self._server: ReaderServer | None = None
        self._task: asyncio.Task[None] | None = None
        self._prepared = False
        self._closed = False

    @property
    def full(self) -> bool:
        """More inputs wait to be read than memory should hold."""
        return self._bytes > _MOST_BYTES

    def prepare(self) -> None:
        """Start the reader server now, as a copy of this process, because no process can be started later."""
        self._server = ReaderServer(self._plan, self._marks, self._slot, self._memory, forked=True)
        self._prepared = True

    def submit(self, task: ReadingTask, size: int, host: str, on_answer: OnAnswer, *, blamed: bool = False) -> None:
        """Queue the input. `blamed`: it killed a process before, and gets one try only."""
        if self._closed:
            return
        self._bytes += size
        self._queues.setdefault(host, deque()).append(QueuedInput(task, size, host, blamed, on_answer))
        # A finished task may still be in `_task`: an input submitted at that moment needs a new task.
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._ended)

    async def read(self, task: ReadingTask, size: int, host: str, *, blamed: bool = False) -> Any:
        """The answer to the task, or `ReaderDied`."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(value: Any) -> None:
            if not answered.done():
                answered.set_result(value)

        self.submit(task, size, host, answer, blamed=blamed)
        return await answered

    def close(self) -> None:
        self._closed = True
        self._queues.clear()
        if self._task is not None:
            self._task.cancel()
        if self._reader is not None:
            self._reader.end()
            self._reader = None
        if self._server is not None:
            self._server.close()

    async def _work(self) -> None:
        while self._queues:
            waiting = self._next_input()
            answer = await self._tried(waiting)
            self._bytes -= waiting.size
            if not self._closed:
                waiting.on_answer(answer)

    def _next_input(self) -> QueuedInput:
        """The oldest input of the host whose turn it is."""
        host, queue = next(iter(self._queues.items()))
        waiting = queue.popleft()
        if queue:
            self._queues.move_to_end(host)
        else:
            del self._queues[host]
        return waiting

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "the isolated reader failed", "exception": error})

    async def _tried(self, waiting: QueuedInput) -> Any:
        if self._here and self._reader is not None and needs_more(waiting.task):
            await self._dismiss(self._reader)
        frame = msgspec.msgpack.encode(waiting.task)
        head = len(frame).to_bytes(HEAD - 1, "big") + b"\0"
        tries = 1 if waiting.blamed or self._deaths[waiting.host] >= _PATIENT_UNTIL else 2
        why = ""
        for _ in range(tries):
            seconds = self._seconds_for(waiting.host, waiting.size)
            answer, why = await self._once(head + frame, seconds, ANSWERS[type(waiting.task)])
            if not why:
                return answer
            self._deaths[waiting.host] += 1
        return ReaderDied(why)

    async def _dismiss(self, reader: ReaderLink) -> None:
        self._reader = None
        reader.kill()
        await reader.status()

    def _seconds_for(self, host: str, size: int) -> float:
        """The time limit. It falls with the deaths of the host, but a normal input of this size can always be read in
        it."""
        deaths = self._deaths[host]
        if deaths < _PATIENT_UNTIL:
            return self._seconds
        least = _LEAST_SECONDS + _LEAST_SECONDS_FOR_MIB * size / (1 << 20)
        return max(min(least, self._seconds), self._seconds / deaths)

    async def _once(self, frame: bytes, seconds: float, kind: Any) -> tuple[Any, str]:
        """The answer of one reader, or the reason why there is none."""
        try:
            reader = self._reader = self._reader or await self._started()
        except (OSError, TimeoutError) as error:
            if self._prepared:  # this process cannot start another server, but the process that replaces it can
                raise
            return None, f"no reader could be started: {error}"
        try:
            meant, data = await reader.exchange_within(frame, seconds)
        except TimeoutError:
            await self._dismiss(reader)
            return None, f"time: it was not read within {seconds:g} s"
        except OSError:
            self._reader = None
            return None, self._cause(await reader.status())
        if meant == LEAVES:  # its memory has grown too much: it exits, and a new reader replaces it
            self._reader = None
            await reader.status()
        return msgspec.msgpack.decode(data, type=kind), ""

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


class ReaderLink:
    """A reader process: its socket, and its pid."""

    def __init__(self, end: socket.socket, pid: int, server: ReaderServer | None) -> None:
        self._end = end
        self._pid = pid
        self._server = server
        self._loop = asyncio.get_running_loop()

    async def exchange(self, frame: bytes) -> tuple[int, bytes]:
        """Send a task. Returns the answer, and its flag. `OSError`: the reader has exited."""
        await self._loop.sock_sendall(self._end, frame)
        head = await self._receive(HEAD)
        return head[-1], await self._receive(int.from_bytes(head[: HEAD - 1], "big"))

    async def exchange_within(self, frame: bytes, seconds: float) -> tuple[int, bytes]:
        """The same with a limit. `TimeoutError`: the reader used this much CPU time, or several times as much wall
        time."""
        exchange = self._loop.create_task(self.exchange(frame))
        started, cpu_started = time.monotonic(), cpu_seconds(self._pid)
        try:
            left = seconds
            while not (await asyncio.wait({exchange}, timeout=left))[0]:
                left = min(
                    seconds - (cpu_seconds(self._pid) - cpu_started),
                    started + seconds * _WALL_FACTOR - time.monotonic(),
                )
                if left <= 0:
                    raise TimeoutError
                left = max(left, _LOOK_AGAIN)
            return exchange.result()
        finally:
            if not exchange.done():
                exchange.cancel()
                await asyncio.wait({exchange})  # it must release the socket before that is closed

    async def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            some = await self._loop.sock_recv(self._end, min(size - len(data), 1 << 20))
            if not some:
                raise ConnectionError("the reader has exited")
            data += some
        return bytes(data)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it, without asking for its exit status."""
        self._end.close()
        self.kill()
        if self._server is None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)

    async def status(self) -> int:
        """Its exit status. It is killed if it does not exit soon."""
        self._end.close()
        if self._server is not None:
            return await self._server.status(self.kill)
        give_up = time.monotonic() + _STATUS_SECONDS
        while time.monotonic() < give_up:
            if (status := _wait_for(self._pid, os.WNOHANG)) is not None:
                return status
            await asyncio.sleep(0.002)
        self.kill()
        return _wait_for(self._pid, 0) or signal.SIGKILL


class ReaderServer:
    """The process that forks readers: a new program, or a copy of this process if no program can be started later."""

    def __init__(self, plan: Plan, marks: ReadingMarks, slot: int, memory: int, *, forked: bool = False) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._loop = asyncio.get_running_loop()
        self._receiving: asyncio.Task[bytes] | None = None
        with theirs:
            if forked:
                self._pid = fork_server(theirs, marks, slot, memory)
            else:
                numbers = (theirs.fileno(), marks.descriptor, slot, memory, os.getpid())
                process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-P", "-m", "silkline.crawl.reader_process", *map(str, numbers)],
                    env=scrubbed(),
                    pass_fds=(theirs.fileno(), marks.descriptor),
                    stdin=subprocess.DEVNULL,
                )
                process.returncode = 0  # this class waits for the process, so subprocess must not
                self._pid = process.pid
        self._control.send(msgspec.msgpack.encode(plan))
        self._control.setblocking(False)

    async def fork(self, end: socket.socket) -> int:
        """Fork a reader that uses the other end of this socket. Returns its pid."""
        socket.send_fds(self._control, [b"fork"], [end.fileno()])
        return int(await self._hear(_START_SECONDS))

    async def status(self, kill: Callable[[], None]) -> int:
        try:
            try:
                return int(await self._hear(_STATUS_SECONDS))
            except TimeoutError:
                kill()
                return int(await self._hear(_START_SECONDS))
        except TimeoutError:
            self.close()  # the next caller that needs a reader starts another server
            return signal.SIGKILL
        except OSError:
            return signal.SIGKILL

    async def _hear(self, seconds: float) -> bytes:
        """The next message. A late message is kept for the next call, because cancelling the receive would lose it."""
        if self._receiving is None:
            self._receiving = self._loop.create_task(self._loop.sock_recv(self._control, _CONTROL_BYTES))
        done, _ = await asyncio.wait({self._receiving}, timeout=seconds)
        if not done:
            raise TimeoutError
        received, self._receiving = self._receiving, None
        said = received.result()
        if not said:
            raise ConnectionError("the reader server has exited")
        return said

    def close(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
        self._control.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used. 0 if it is not known, for example because the process has exited."""
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
    except OSError:
        return 0.0


def _wait_for(pid: int, options: int) -> int | None:
    """The wait status of a child. None: it is still running."""
    ended, status = os.waitpid(pid, options)
    return status if ended else None


def plan_for_readers(plan: Plan) -> Plan:
    """The plan without the parts that a reader does not need: credentials, addresses and rules of the job."""
    return msgspec.structs.replace(
        plan, include=(), exclude=(), exclude_hosts=(), proxy="", allow_private=(), origin_headers={}, archive=None
    )

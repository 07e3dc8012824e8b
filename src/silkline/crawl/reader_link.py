"""The connection of an owner to a reader process, and to the server that forks readers. Used inside an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final

import msgspec

from silkline.confine.environment import scrubbed
from silkline.crawl.connection import MOST
from silkline.crawl.plan import Plan
from silkline.crawl.reader_process import HEAD, fork_server
from silkline.reading_marks import ReadingMarks

_CONTROL_BYTES: Final = 64
_STATUS_SECONDS: Final = 2.0
_START_SECONDS: Final = 60.0
_LOOK_AGAIN: Final = 0.02
_CPU_CLOCK: Final = 2
"""The kernel's CPUCLOCK_SCHED: together with the complement of a pid it is the clock id of that process."""
_WALL_FACTOR: Final = 4
"""The limit on wall time, as a multiple of the CPU limit: for a reader that waits, or on a loaded machine."""


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
        size = int.from_bytes(head[: HEAD - 1], "big")
        if size > MOST:
            raise ConnectionError("the reader sends too much")
        return head[-1], await self._receive(size)

    async def exchange_within(self, frame: bytes, seconds: float) -> tuple[int, bytes, float]:
        """The same with a limit, and the time that it took. `TimeoutError`: the reader used this much CPU time, or
        several times as much wall time."""
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
            took = cpu_seconds(self._pid) - cpu_started
            # The clock of a reader that has exited is not known.
            return (*exchange.result(), took if took > 0 else time.monotonic() - started)
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

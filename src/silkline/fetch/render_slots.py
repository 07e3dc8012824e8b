"""Limits how many pages are in browsers at once, over all processes of this machine, and shares the slots fairly.

A slot is a file in the data directory. A process holds the slot while it has a lock on that file; the kernel releases
the lock when the process dies. A free slot goes to the job that holds the fewest slots, and among these to the one that
waits longest (render_tickets.py). Within the process it goes to the host that holds the fewest slots, and among these
to the one that was served longest ago. So neither a job nor a host with many slow pages can keep others out for longer
than one page takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections import Counter, deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from silkline.fetch.render_tickets import Tickets
from silkline.private_files import make_private_folder

_LOOK_AGAIN: Final = 0.05
_LONGEST_NAME: Final = 100


class Slots:
    """The slots that all processes with the same folder share. Must be used inside one event loop."""

    def __init__(self, folder: Path, count: int, job: str = "") -> None:
        self._folder = folder
        self._count = count
        self._job = job or f"process-{os.getpid()}"
        self._tickets = Tickets(folder, self._job)
        self._waiting: dict[str, deque[asyncio.Future[int]]] = {}
        """The pages that wait, by host. The host that was served longest ago comes first."""
        self._held: Counter[str] = Counter()
        self._serving: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def one(self, host: str, seconds: float) -> AsyncIterator[None]:
        """Hold a slot while the body runs. Raises `TimeoutError` if no slot becomes free in time."""
        slot: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(host, deque()).append(slot)
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        try:
            async with asyncio.timeout(seconds):
                held = await slot
        except BaseException:
            self._leave(host, slot)
            raise
        try:
            yield
        finally:
            os.close(held)
            self._release(host)

    def _leave(self, host: str, slot: asyncio.Future[int]) -> None:
        """A page waits no longer. It may have got its slot at the same moment."""
        if slot.done() and not slot.cancelled() and slot.exception() is None:
            os.close(slot.result())
            self._release(host)
        waiting = self._waiting.get(host)
        if waiting is not None and slot in waiting:
            waiting.remove(slot)
            if not waiting:
                del self._waiting[host]

    def _release(self, host: str) -> None:
        self._held[host] -= 1
        if not self._held[host]:
            del self._held[host]

    async def _serve(self) -> None:
        """Give slots to the pages that wait, until none waits."""
        try:
            while self._waiting:
                held: int | OSError | None
                try:
                    held = self._take()
                except OSError as error:  # the disk is full, or no file descriptor is free
                    held = error
                if held is None:
                    await asyncio.sleep(_LOOK_AGAIN)
                else:
                    self._give(held)
        finally:
            self._tickets.leave()
            self._serving = None

    def _give(self, held: int | OSError) -> None:
        """Give a slot, or an error, to the page whose turn it is."""
        host, slot = self._next()
        if isinstance(held, OSError):
            if not slot.done():
                slot.set_exception(held)
        elif slot.done():  # it was cancelled a moment ago
            os.close(held)
        else:
            self._held[host] += 1
            slot.set_result(held)

    def _next(self) -> tuple[str, asyncio.Future[int]]:
        """Remove the page whose turn it is."""
        host = min(self._waiting, key=lambda each: self._held[each])
        waiting = self._waiting.pop(host)
        slot = waiting.popleft()
        if waiting:
            self._waiting[host] = waiting  # at the end: the others come first
        return host, slot

    def _take(self) -> int | None:
        """The descriptor of a slot. None: no slot is free, or it is the turn of another job."""
        make_private_folder(self._folder)
        free: int | None = None
        held: Counter[str] = Counter()
        try:
            for number in range(self._count):
                file = os.open(self._folder / f"page-{number}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    held[os.pread(file, _LONGEST_NAME, 0).decode("ascii", "replace")] += 1
                    os.close(file)
                    continue
                if free is None:
                    free = file
                else:
                    os.close(file)
            if free is None or not self._tickets.is_first(held):
                self._tickets.wait()
                return None
            os.ftruncate(free, 0)
            os.pwrite(free, self._job.encode()[:_LONGEST_NAME], 0)
            self._tickets.leave()
            taken, free = free, None
            return taken
        finally:
            if free is not None:
                os.close(free)

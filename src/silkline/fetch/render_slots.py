"""Limits how many pages are in browsers at once, over all processes of this machine, and shares the slots fairly.

A slot is a file in the data directory. A process holds the slot while it has a lock on that file; the kernel releases
the lock when the process dies. A free slot goes to the job that holds the fewest slots, and among these to the one that
waits longest. Within a job, processes with pages of slow senders only come last (render_tickets.py). Within the
process, `SlotTurns` chooses the page. It is told for how long each page holds its slot. So neither a job nor a sender
with many slow pages can keep others out for longer than one page takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from silkline.fetch.render_tickets import Tickets
from silkline.private_files import make_private_folder

_LOOK_AGAIN: Final = 0.05
_LONGEST_NAME: Final = 100
_SLOW: Final = "slow"


@dataclass(eq=False, slots=True)
class WaitingPage:
    """A page that wants a slot, and where it comes from. `id` and `size` are for the caller."""

    host: str
    address: str = ""
    id: int = 0
    size: int = 0
    slot: asyncio.Future[int] | None = None
    """Set while it waits."""


class SlotTurns(Protocol):
    """The pages of one process that wait for a slot, and their order. True: some wait."""

    def __bool__(self) -> bool: ...

    def add(self, page: WaitingPage) -> None: ...

    def take(self) -> WaitingPage:
        """Remove and return the page whose turn it is."""

    def remove(self, page: WaitingPage) -> None:
        """A page waits no longer, if it still waits."""

    @property
    def slow(self) -> bool:
        """Whether all pages that wait are of senders whose pages are known to be slow."""

    def used(self, page: WaitingPage, seconds: float) -> None:
        """A page that was taken has held its slot for so many more seconds."""


class Slots:
    """The slots that all processes with the same folder share. Must be used inside one event loop."""

    def __init__(self, folder: Path, count: int, turns: SlotTurns, job: str = "") -> None:
        self._folder = folder
        self._count = count
        self._turns = turns
        self._job = job or f"process-{os.getpid()}"
        self._tickets = Tickets(folder, self._job)
        self._held: dict[WaitingPage, float] = {}
        """The pages that hold slots, and the moments up to which their time is counted."""
        self._given_at = 0.0
        self._serving: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def one(self, page: WaitingPage, seconds: float) -> AsyncIterator[None]:
        """Hold a slot while the body runs. Raises `TimeoutError` if no page gets a slot for so many seconds.

        While others get slots, the page keeps its turn: it would lose it if it came again.
        """
        slot = page.slot = asyncio.get_running_loop().create_future()
        self._turns.add(page)
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        try:
            held = await self._given(slot, seconds)
        except BaseException:
            self._leave(page, slot)
            raise
        try:
            yield
        finally:
            os.close(held)
            self._release(page)

    async def _given(self, slot: asyncio.Future[int], seconds: float) -> int:
        loop = asyncio.get_running_loop()
        since = loop.time()
        while (until := max(since, self._given_at) + seconds) > loop.time():
            done, _ = await asyncio.wait({slot}, timeout=until - loop.time())
            if done:
                return slot.result()
        raise TimeoutError

    def _leave(self, page: WaitingPage, slot: asyncio.Future[int]) -> None:
        """A page waits no longer. It may have got its slot at the same moment."""
        if slot.done() and not slot.cancelled() and slot.exception() is None:
            os.close(slot.result())
            self._release(page)
        self._turns.remove(page)

    def _release(self, page: WaitingPage) -> None:
        self._count_time()
        del self._held[page]

    def _count_time(self) -> None:
        """Also the pages that still hold their slots count: they may never end by themselves."""
        now = asyncio.get_running_loop().time()
        for page, since in self._held.items():
            self._turns.used(page, now - since)
            self._held[page] = now

    async def _serve(self) -> None:
        """Give slots to the pages that wait, until none waits."""
        try:
            while self._turns:
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
        self._count_time()
        page = self._turns.take()
        slot = page.slot
        if isinstance(held, OSError):
            if slot is not None and not slot.done():
                slot.set_exception(held)
        elif slot is None or slot.done():  # it was cancelled a moment ago
            os.close(held)
        else:
            self._held[page] = self._given_at = asyncio.get_running_loop().time()
            slot.set_result(held)

    def _take(self) -> int | None:
        """The descriptor of a slot. None: no slot is free, or it is the turn of another job."""
        make_private_folder(self._folder)
        free: int | None = None
        held: Counter[str] = Counter()
        slow, slow_held = self._turns.slow, False
        try:
            for number in range(self._count):
                file = os.open(self._folder / f"page-{number}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    job, _, kind = os.pread(file, _LONGEST_NAME, 0).decode("ascii", "replace").partition("\n")
                    held[job] += 1
                    slow_held = slow_held or (job == self._job and kind == _SLOW)
                    os.close(file)
                    continue
                if free is None:
                    free = file
                else:
                    os.close(file)
            if free is None or not self._tickets.is_first(held, slow=slow, slow_held=slow_held):
                self._tickets.wait(slow=slow)
                return None
            os.ftruncate(free, 0)
            os.pwrite(free, f"{self._job}\n{_SLOW if slow else ''}".encode()[:_LONGEST_NAME], 0)
            self._tickets.leave()
            taken, free = free, None
            return taken
        finally:
            if free is not None:
                os.close(free)

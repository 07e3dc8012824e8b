"""Limits how many pages are in browsers at once, over all processes of this machine.

A slot is a file in the data directory. A process holds the slot while it has a lock on that file; the kernel releases
the lock when the process dies. Tasks of one process wait in order. Between processes the first that tries gets a free
slot.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from silkline.private_files import make_private_folder

_LOOK_AGAIN: Final = 0.05


class Slots:
    """The slots that all processes with the same folder share."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._count = count
        self._line = asyncio.Semaphore(count)

    @contextlib.asynccontextmanager
    async def one(self, seconds: float) -> AsyncIterator[None]:
        """Hold a slot while the body runs. Raises `TimeoutError` if no slot becomes free in time."""
        async with asyncio.timeout(seconds) as patience:
            await self._line.acquire()
            try:
                held = await self._take()
            except BaseException:
                self._line.release()
                raise
            patience.reschedule(None)
            try:
                yield
            finally:
                os.close(held)
                self._line.release()

    async def _take(self) -> int:
        make_private_folder(self._folder)
        while True:
            for number in range(self._count):
                held = os.open(self._folder / f"page-{number}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return held
                except BlockingIOError:
                    os.close(held)
            await asyncio.sleep(_LOOK_AGAIN)

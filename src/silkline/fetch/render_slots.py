"""How many pages may be in browsers at once: on this machine, whoever asks.

A place is a file in the data directory, and having it is a lock on that file, which the kernel gives back when the
holder dies. Those who wait in one process stand in line; between processes it is the first to look.
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
    """Places shared with all processes that use the same folder."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._count = count
        self._line = asyncio.Semaphore(count)

    @contextlib.asynccontextmanager
    async def one(self, seconds: float) -> AsyncIterator[None]:
        """Have a place for as long as the body runs. `TimeoutError` when none became free in time."""
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

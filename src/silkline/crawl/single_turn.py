"""A turn on a host for one request, for code that has no fetcher."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Final

from silkline.errors import Unavailable
from silkline.model.kind import Progress
from silkline.store import bookings
from silkline.store.bookings import Asked

_LATE: Final = 0.25
_WAY: Final = 0.05
"""Seconds that a request may take to reach the host; the time of SQLite is rounded too."""
_LOOK: Final = 0.25


async def wait_for_turn(progress: Progress, host: str, delay: float, is_over: Callable[[], bool]) -> bool:
    """Book one request to a host, and wait for it. False: `is_over` became true first."""
    while not is_over():
        before = time.monotonic()
        asked = [Asked(host, secrets.randbits(62), delay, _LATE + _WAY)]
        try:
            (booked,), _ = await asyncio.to_thread(bookings.book, progress.database, progress.job.id, asked, {})
        except Unavailable:
            await asyncio.sleep(_LOOK)
            continue
        starts, ends = time.monotonic() + booked.starts, before + booked.ends - _WAY
        while (left := starts - time.monotonic()) > 0 and not is_over():
            await asyncio.sleep(min(left, _LOOK))
            progress.report()
        if time.monotonic() <= ends:
            return not is_over()
    return False

"""Whether the caller of a long answer may still have it: tokens are removed, and sessions end, while it is sent."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from silkline.errors import StoreError

StillValid = Callable[[], bool]  # whether the token or the session of the caller is still valid


class RegularCheck:
    """Checks the caller of one answer every `every` seconds."""

    def __init__(self, valid: StillValid, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._valid = valid
        self._every = every
        self._clock = clock
        self._checked = clock()

    @property
    def due(self) -> float:
        """Seconds until the next check."""
        return self._checked + self._every - self._clock()

    async def holds(self) -> bool:
        """False: the caller is no longer valid. Looks only when a check is due."""
        if self.due > 0:
            return True
        try:
            valid = await run_in_threadpool(self._valid)
        except StoreError:  # there is nothing new to send either
            valid = True
        self._checked = self._clock()
        return valid

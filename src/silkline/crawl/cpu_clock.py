"""CPU time of a part of this thread, for callers that measure wall time anyway and seldom need more.

Asking the kernel for the CPU time costs about a microsecond, ten times as much as the wall time. So it is asked at most
once in 10 ms, and once more at the end of a part that took long.
"""

from __future__ import annotations

import time
from typing import Final

_GRAIN: Final = 0.01


class CpuClock:
    """Belongs to one thread, and not to a copy of its process: CPU time starts at zero there."""

    def __init__(self) -> None:
        self._looked_at = float("-inf")
        self._used = 0.0

    def begin(self, now: float) -> None:
        """A part begins at this wall time."""
        if now - self._looked_at > _GRAIN:
            self._looked_at, self._used = now, time.thread_time()

    def since(self, began: float) -> float:
        """CPU seconds of the part that began last. At most 10 ms too little, never too much."""
        return time.thread_time() - self._used - (began - self._looked_at)

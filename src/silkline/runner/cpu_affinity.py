"""Limits a process to some cores where no cgroup can limit its CPU time, and makes it nicer for a part of a core."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

_NICER: Final = 5
_NICEST: Final = 19


def wanted_cpus(payload: Mapping[str, Any], default: float) -> float:
    """The limit from the spec of the job, else from the settings. 0: no limit."""
    own = payload.get("cpus")
    return float(own) if isinstance(own, int | float) and own > 0 else default


class Cores:
    """Gives each limited process the cores that the fewest others have."""

    def __init__(self, nice: int) -> None:
        self._nice = os.getpriority(os.PRIO_PROCESS, 0) + nice
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()

    def limit(self, pid: int, cpus: float) -> tuple[int, ...]:
        """Limit a process that has neither threads nor children. Returns its cores; none: it is not allowed."""
        cores = self._take(math.ceil(cpus))
        try:
            os.sched_setaffinity(pid, cores)
        except OSError:
            self.release(cores)
            return ()
        if cpus != int(cpus):
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, pid, min(self._nice + _NICER, _NICEST))
        return cores

    def release(self, cores: tuple[int, ...]) -> None:
        with self._lock:
            self._taken.subtract(cores)

    def _take(self, number: int) -> tuple[int, ...]:
        with self._lock:
            usable = sorted(os.sched_getaffinity(0), key=lambda core: (self._taken[core], core))
            cores = tuple(sorted(usable[:number]))
            self._taken.update(cores)
        return cores


@contextlib.contextmanager
def limited_here(cpus: float) -> Iterator[None]:
    """Limit this thread, and the threads and processes that it starts meanwhile. 0: no limit."""
    before = os.sched_getaffinity(0)
    if cpus:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, sorted(before)[: math.ceil(cpus)])
    try:
        yield
    finally:
        if cpus:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, before)

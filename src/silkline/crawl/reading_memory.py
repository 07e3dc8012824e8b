"""Limits the memory that one reading may add to this process.

A small page may ask for any amount of memory, if a parser has a weakness that we do not know. A process that does
nothing but read has one limit for its life. A fetcher also holds the frontier, which may grow, so its limit is set for
each reading: what the process used a moment ago, and `read_memory`. At the limit the reading ends with `MemoryError`.
"""

from __future__ import annotations

import os
import resource
import time
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_LOOK_EVERY: Final = 1.0
"""Seconds. A look costs more than the limit itself; between two looks a process grows by far less than the limit."""


class MemorySize:
    """The size of the address space of this process. The file is opened once, because no file can be opened later."""

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def now(self) -> int:
        return int(os.pread(self._statm, 64, 0).split()[0]) * _PAGE_BYTES

    def close(self) -> None:
        os.close(self._statm)


def limit_memory(memory: int, now: int) -> None:
    """Allow this process `memory` bytes more than it uses now, for ever. 0: as many as it wants."""
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))


class ReadingMemory:
    """The limit of a process that also does other things: `begin` before each reading, `end` after it."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._size = MemorySize() if memory else None
        self._usual = resource.getrlimit(resource.RLIMIT_AS)
        self._during = self._usual
        self._look_at = 0.0

    def begin(self) -> None:
        if self._size is None:
            return
        if (now := time.monotonic()) >= self._look_at:
            self._look_at = now + _LOOK_EVERY
            soft, hard = self._usual
            most = self._size.now() + self._memory
            # The operator may have set a lower limit for the whole process.
            self._during = (most if soft == resource.RLIM_INFINITY else min(most, soft), hard)
        resource.setrlimit(resource.RLIMIT_AS, self._during)

    def end(self) -> None:
        if self._size is not None:
            resource.setrlimit(resource.RLIMIT_AS, self._usual)

    def close(self) -> None:
        if self._size is not None:
            self._size.close()
            self._size = None

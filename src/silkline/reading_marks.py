"""Marks: what each process of an attempt is reading at this moment, in a file that all of them have mapped.

A process writes the mark before it reads bytes from the web, and clears one byte afterwards. The mapping belongs to the
file, so the mark remains after the process was killed, and shows which input to blame. The supervisor creates the file
and passes its descriptor to the runner; a job without one uses a file in memory, and so does a supervisor whose disk is
full. A mark costs about 0.5 µs (tests/unit).

A process that a page has taken over must not be able to cut the file: the kernel ends every process that uses a mapped
page behind the end of its file. So the supervisor does not map the file, and confined processes keep the mapping but no
descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final, NamedTuple, Self

from silkline.private_files import FILE_MODE, allocate

SLOTS: Final = 256
SLOT_BYTES: Final = 1024
LEADER: Final = 0
"""The slot of the process that the supervisor started."""

PAGE: Final = 1
ROBOTS: Final = 2
SITEMAP: Final = 3
LINKS: Final = 4
RULES: Final = 5
KINDS: Final = {PAGE: "page", ROBOTS: "robots.txt", SITEMAP: "sitemap", LINKS: "links of a page", RULES: "robots rules"}

MOST_NAME: Final = 1000
# Kind, pid, start, name, and whether the mark is active. That byte is last, so that a half-written mark is never used.
_LAYOUT: Final = struct.Struct(f"<BId{MOST_NAME}sB")
_ACTIVE_AT: Final = _LAYOUT.size - 1
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EOPNOTSUPP)

log = logging.getLogger("silkline.marks")


class Mark(NamedTuple):
    """One input that is being read. `name` is its URL, cut to `MOST_NAME`; `started` is `time.monotonic()`."""

    slot: int
    kind: int
    name: str
    pid: int
    started: float

    def __str__(self) -> str:
        return f"{KINDS.get(self.kind, 'input')} {self.name}"


class MarkSlot:
    """The slot of one process. Only that process writes to it."""

    __slots__ = ("_active_at", "_at", "_kept", "_memory", "_pid", "index")

    def __init__(self, memory: mmap.mmap, index: int) -> None:
        self.index = index
        self._memory = memory
        self._at = index * SLOT_BYTES
        self._active_at = self._at + _ACTIVE_AT
        self._pid = os.getpid()
        self._kept = False
        memory[self._active_at] = 0

    def begin(self, kind: int, name: str) -> None:
        """The process starts to read this input."""
        if not self._kept:
            _pack(self._memory, self._at, kind, self._pid, _now(), name.encode("utf-8", "replace"), 1)

    def end(self) -> None:
        """The process has read the input."""
        if not self._kept:
            self._memory[self._active_at] = 0

    def keep(self) -> None:
        """Reading the input broke this process, which will exit soon: nothing may replace the mark."""
        self._kept = True


_pack: Final = _LAYOUT.pack_into
_now: Final = time.monotonic


class MarksFile:
    """All slots of one attempt, for the supervisor: the file is read, not mapped. What is missing in it is no mark."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def create(cls, path: Path) -> Self:
        """Create an empty file that only its owner may read. If the disk has no space for it: a file in memory."""
        try:
            return cls(_new_file(path))
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            log.warning("the marks of an attempt are only in memory, %s cannot be made: %s", path, error.strerror)
            return cls(_file_in_memory())

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the file of an attempt. Without a path: a file in memory, which children can inherit."""
        return cls(os.open(path, os.O_RDWR | os.O_CLOEXEC) if path else _file_in_memory())

    def mark_of(self, index: int) -> Mark | None:
        """What the process of this slot is reading, or was reading when it died."""
        return _mark(index, self._stored(index * SLOT_BYTES, _LAYOUT.size))

    def active(self) -> list[Mark]:
        """Every input that is marked now."""
        stored = self._stored(0, SLOTS * SLOT_BYTES)
        found = (_mark(index, stored, index * SLOT_BYTES) for index in range(SLOTS))
        return [mark for mark in found if mark is not None]

    def close(self) -> None:
        os.close(self.descriptor)

    def _stored(self, start: int, size: int) -> bytes:
        """This part of the file. Zeros replace what was cut off."""
        return os.pread(self.descriptor, size, start).ljust(size, b"\0")


class ReadingMarks(MarksFile):
    """The same for the processes of the attempt, which have the file mapped and write to it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        try:
            self._memory = mmap.mmap(descriptor, SLOTS * SLOT_BYTES)
        except BaseException:
            os.close(descriptor)
            raise

    def slot(self, index: int) -> MarkSlot:
        """The slot to write to, for the process that calls this."""
        return MarkSlot(self._memory, index)

    def give_up_descriptors(self) -> None:
        """Keep the mapping but no descriptor of the file, so that this process cannot cut or lengthen it.

        Python keeps a descriptor of its own for a mapping. Each number stays open, because its owner will close it.
        """
        file = os.fstat(self.descriptor)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for number in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208
            with contextlib.suppress(OSError):  # the descriptor of the listing itself is already closed
                if os.path.samestat(os.fstat(number), file):
                    os.dup2(nothing, number, inheritable=False)
        os.close(nothing)

    def close(self) -> None:
        self._memory.close()
        super().close()

    def _stored(self, start: int, size: int) -> bytes:
        return self._memory[start : start + size]


def _mark(index: int, stored: bytes, at: int = 0) -> Mark | None:
    if not stored[at + _ACTIVE_AT]:
        return None
    kind, pid, started, name, _ = _LAYOUT.unpack_from(stored, at)
    return Mark(index, kind, _text(name.rstrip(b"\0")), pid, started)


def _new_file(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        allocate(descriptor, SLOTS * SLOT_BYTES)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    return descriptor


def _file_in_memory() -> int:
    descriptor = os.memfd_create("silkline-marks", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, SLOTS * SLOT_BYTES)
    return descriptor


def path_of(descriptor: int) -> str:
    """A path by which this process can open the file again, wherever it is."""
    return f"/proc/self/fd/{descriptor}"


def clipped(name: str) -> str:
    """A name in the form that a mark has."""
    return name if len(name) <= MOST_NAME and name.isascii() else _text(name.encode("utf-8", "replace")[:MOST_NAME])


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")

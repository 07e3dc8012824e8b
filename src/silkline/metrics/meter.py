"""The meter of one process: a file in the data directory that the process has mapped, with one cell for each value.

A store of eight bytes into the mapping is complete or did not happen, and the file keeps it when the process is killed.
The process holds a lock on its meter. The kernel releases the lock when the process ends, and the next process of the
same role continues with the same meter. So nothing has to be moved when a process dies, and there are never more meters
than processes were alive at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from silkline.private_files import FILE_MODE, allocate, make_private_folder

CELLS: Final = 4096
KEY_BYTES: Final = 120
MOST: Final = 10_000
"""Meters of one role."""
_MAGIC: Final = b"silkmtr1"
_USED_AT, _PID_AT, _ID_AT = 1, 2, 24
_HEAD: Final = struct.Struct("=8sQQ16s")
_VALUES_AT: Final = 4096
_KEYS_AT: Final = _VALUES_AT + 8 * CELLS
SIZE: Final = _KEYS_AT + KEY_BYTES * CELLS
OVERFLOW: Final = 0
"""The cell of everything that has no room. It is never shown."""


class Meter:
    """Named cells. Without a descriptor it is only in memory, until the process gets a file."""

    def __init__(self, descriptor: int | None = None, name: str = "") -> None:
        self.descriptor = descriptor
        self.name = name
        self._memory = mmap.mmap(-1 if descriptor is None else descriptor, SIZE)
        self._numbers = memoryview(self._memory)[:_VALUES_AT].cast("Q")
        self.values = memoryview(self._memory)[_VALUES_AT:_KEYS_AT].cast("d")
        if self._memory[: len(_MAGIC)] != _MAGIC:
            if any(self._memory[:_VALUES_AT]):  # of another version
                self._memory[:] = bytes(SIZE)
            self._memory[_ID_AT : _ID_AT + 16] = uuid.uuid4().bytes
            self._numbers[_USED_AT] = OVERFLOW + 1
            self._memory[: len(_MAGIC)] = _MAGIC  # last: without it the file is not read
        self._cells = {key: cell for cell, key in self._stored_keys()}

    @property
    def id(self) -> str:
        """The same for every process that used this meter."""
        return str(uuid.UUID(bytes=self._memory[_ID_AT : _ID_AT + 16]))

    @property
    def role(self) -> str:
        return self.name.rpartition("-")[0]

    def take(self) -> None:
        """Write the pid of the process that counts here now."""
        self._numbers[_PID_AT] = os.getpid()

    def cell(self, key: str) -> int:
        """The cell with this name. A new one has the value 0."""
        found = self._cells.get(key)
        if found is not None:
            return found
        name, cell = key.encode(), self._numbers[_USED_AT]
        if cell >= CELLS or len(name) > KEY_BYTES:
            self._cells[key] = OVERFLOW
            return OVERFLOW
        at = _KEYS_AT + KEY_BYTES * cell
        self._memory[at : at + KEY_BYTES] = name.ljust(KEY_BYTES, b"\0")
        self._numbers[_USED_AT] = cell + 1  # after its name: a reader sees no cell without a name
        self._cells[key] = cell
        return cell

    def items(self) -> Iterator[tuple[str, float]]:
        """Every name with its value."""
        for cell, key in self._stored_keys():
            yield key, self.values[cell]

    def _stored_keys(self) -> Iterator[tuple[int, str]]:
        for cell in range(OVERFLOW + 1, min(self._numbers[_USED_AT], CELLS)):
            at = _KEYS_AT + KEY_BYTES * cell
            yield cell, _text(self._memory[at : at + KEY_BYTES])

    def close(self) -> None:
        """Unmap the file. If it is the last process with this descriptor, another process can take the meter."""
        self._numbers.release()
        self.values.release()
        self._memory.close()
        if self.descriptor is not None:
            os.close(self.descriptor)


def claim(folder: Path, role: str) -> Meter:
    """Take the first meter of a role that no living process uses; make one if all are in use.

    Raises an OSError if the disk has no space for it.
    """
    make_private_folder(folder)
    for number in range(MOST):
        name = f"{role}-{number}"
        descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            allocate(descriptor, SIZE)  # also a meter that exists: it may be sparse
            return Meter(descriptor, name)
        except BlockingIOError:
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    raise OSError(f"there are already {MOST} meters in {folder}")


class StoredMeter(NamedTuple):
    """A copy of a meter, to read it."""

    name: str
    id: str
    pid: int
    used: bool
    """Whether a process counts in it now."""
    items: list[tuple[str, float]]

    @property
    def role(self) -> str:
        return self.name.rpartition("-")[0]


def stored(folder: Path) -> Iterator[StoredMeter]:
    """Every meter of a folder.

    They are read, not mapped: a process that reads web content may be taken over, and could cut the file that it has
    open, which would kill a process that has it mapped.
    """
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except FileNotFoundError:
        return
    for name in names:
        with contextlib.suppress(FileNotFoundError, struct.error):  # removed, too short, or being made
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                yield _read(descriptor, name)
            finally:
                os.close(descriptor)


def _read(descriptor: int, name: str) -> StoredMeter:
    magic, used_cells, pid, id = _HEAD.unpack_from(os.pread(descriptor, _HEAD.size, 0))
    if magic != _MAGIC:
        raise struct.error("this is not a meter")
    cells = min(used_cells, CELLS)
    values = struct.unpack_from(f"={cells}d", os.pread(descriptor, 8 * cells, _VALUES_AT))
    keys = os.pread(descriptor, KEY_BYTES * cells, _KEYS_AT)
    named = ((_text(keys[KEY_BYTES * cell : KEY_BYTES * (cell + 1)]), values[cell]) for cell in range(1, cells))
    return StoredMeter(name, str(uuid.UUID(bytes=id)), pid, _is_locked(descriptor), list(named))


def _text(key: bytes) -> str:
    return key.rstrip(b"\0").decode("utf-8", "replace")


def _is_locked(descriptor: int) -> bool:
    """Whether another descriptor has the lock. A shared lock for a moment makes a starting process take the next
    meter, which does no harm."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False

"""The processes that wait for a slot in a browser, in the order in which they are served.

A ticket is a file whose name has the time since when its process waits, and its job. The process has a lock on it, so
the ticket of a dead process is known, and removed by the next one that looks. A process that does not look for a slot
for a while, because it is busy or stopped, does not keep the others waiting.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import Final

_PREFIX: Final = "wait-"
_FRESH: Final = 1.0
"""Seconds. A process that waits looks much more often."""


class Tickets:
    """The tickets of all processes with the same folder, and the one of this process."""

    def __init__(self, folder: Path, job: str) -> None:
        self._folder = folder
        self._job = job
        self._held = -1
        self._name = ""
        self._since = 0

    def wait(self) -> None:
        """Take a ticket, or say that we still wait."""
        if self._held >= 0:
            os.utime(self._held)
            return
        since = time.monotonic_ns()  # the same clock for all processes of the machine
        # It gets its name when it is locked: otherwise another process could believe that its owner is dead.
        draft = self._folder / f".ticket-{os.getpid()}-{id(self)}-{secrets.token_hex(8)}"
        held = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            name = f"{_PREFIX}{since:020d}-{os.getpid()}-{id(self)}-{self._job}"
            draft.rename(self._folder / name)
        except BaseException:
            os.close(held)
            raise
        self._held, self._name, self._since = held, name, since

    def leave(self) -> None:
        """Give the ticket back. The next one is behind all that wait now."""
        if self._held < 0:
            return
        with contextlib.suppress(OSError):
            (self._folder / self._name).unlink()
        os.close(self._held)
        self._held, self._name, self._since = -1, "", 0

    def is_first(self, held: Counter[str]) -> bool:
        """Whether it is our turn. `held` says how many slots each job holds."""
        ours = (held[self._job], self._since or time.monotonic_ns())
        for name in os.listdir(self._folder):  # noqa: PTH208 - the names are enough
            if not name.startswith(_PREFIX) or name == self._name:
                continue
            since, _, rest = name.removeprefix(_PREFIX).partition("-")
            job = rest.split("-", 2)[-1]
            if since.isdecimal() and (held[job], int(since)) < ours and self._waits(name):
                return False
        return True

    def _waits(self, name: str) -> bool:
        path = self._folder / name
        try:
            other = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return time.time() - os.fstat(other).st_mtime < _FRESH
        else:
            with contextlib.suppress(OSError):
                path.unlink()
            return False
        finally:
            os.close(other)

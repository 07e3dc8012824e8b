"""The processes that wait for a slot in a browser, in the order in which they are served.

A ticket is a file whose name has the time since when its process waits, and its job. Jobs come in the order of their
oldest tickets. Within a job, processes that have only pages of slow senders come last, but not for ever: after a while
one of them may go, if no slow page of the job is in a browser. So slow pages hold one slot at most while others wait.

A process has a lock on its ticket, so the ticket of a dead process is known, and removed by the next one that looks. A
process that does not look for a slot for a while, because it is busy or stopped, does not keep the others waiting.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

_PREFIX: Final = "wait-"
_FRESH: Final = 1.0
"""Seconds. A process that waits looks much more often."""
_PATIENCE: Final = 30.0
"""Seconds that a process with slow pages lets others of its job go first."""


class _Ticket(NamedTuple):
    since: int
    slow: bool
    job: str

    def name(self, owner: str) -> str:
        return f"{_PREFIX}{self.since:020d}-{'slow' if self.slow else 'any'}-{owner}-{self.job}"


def _ticket_of(name: str) -> _Ticket | None:
    since, *rest = name.removeprefix(_PREFIX).split("-", 4)
    return _Ticket(int(since), rest[0] == "slow", rest[3]) if since.isdecimal() and len(rest) == 4 else None


class Tickets:
    """The tickets of all processes with the same folder, and the one of this process."""

    def __init__(self, folder: Path, job: str) -> None:
        self._folder = folder
        self._job = job
        self._held = -1
        self._name = ""
        self._since = 0
        self._slow = False
        self._owner = f"{os.getpid()}-{id(self)}"

    def wait(self, *, slow: bool = False) -> None:
        """Take a ticket, or say that we still wait. `slow`: only pages of slow senders do."""
        if self._held >= 0:
            os.utime(self._held)
            if slow != self._slow:
                name = _Ticket(self._since, slow, self._job).name(self._owner)
                (self._folder / self._name).rename(self._folder / name)
                self._name, self._slow = name, slow
            return
        since = time.monotonic_ns()  # the same clock for all processes of the machine
        # It gets its name when it is locked: otherwise another process could believe that its owner is dead.
        draft = self._folder / f".ticket-{self._owner}-{secrets.token_hex(8)}"
        held = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            name = _Ticket(since, slow, self._job).name(self._owner)
            draft.rename(self._folder / name)
        except BaseException:
            os.close(held)
            raise
        self._held, self._name, self._since, self._slow = held, name, since, slow

    def leave(self) -> None:
        """Give the ticket back. The next one is behind all that wait now."""
        if self._held < 0:
            return
        with contextlib.suppress(OSError):
            (self._folder / self._name).unlink()
        os.close(self._held)
        self._held, self._name, self._since = -1, "", 0

    def is_first(self, held: Counter[str], *, slow: bool = False, slow_held: bool = False) -> bool:
        """Whether it is our turn. `held` says how many slots each job holds, `slow_held` whether our job holds one for
        a page of a slow sender."""
        now = time.monotonic_ns()
        ours, ours_since = _Ticket(self._since or now, slow, self._job), self._since or now
        others: list[tuple[_Ticket, str]] = []
        for name in os.listdir(self._folder):  # noqa: PTH208 - the names are enough
            ticket = _ticket_of(name) if name.startswith(_PREFIX) and name != self._name else None
            if ticket is None:
                continue
            if ticket.job != self._job:
                others.append((ticket, name))
                continue
            before = _rank(ticket, now, slow_held) < _rank(ours, now, slow_held)
            if (before or ticket.since < ours_since) and self._waits(name):
                if before:
                    return False
                ours_since = ticket.since
        return not any(
            (held[ticket.job], ticket.since) < (held[self._job], ours_since) and self._waits(name)
            for ticket, name in others
        )

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


def _rank(ticket: _Ticket, now: int, slow_held: bool) -> tuple[bool, int]:
    """The place of a ticket within its job."""
    return ticket.slow and (slow_held or now - ticket.since < _PATIENCE * 1e9), ticket.since

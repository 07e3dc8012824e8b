"""Who this supervisor is, and which supervisors of this machine are dead.

Each supervisor holds a lock on a file in the data directory for as long as it lives. The kernel lets go of the lock
when the process ends, however it ends; so a lock that can be taken proves the owner dead, across reboots, reused pids
and container restarts, which a pid can not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import secrets
import socket
from pathlib import Path

from silkline.private_files import make_private_folder


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def allow_open_files(wanted: int) -> None:
    """Every running job costs its supervisor four; what a session begins with is often only 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Identity:
    """A worker id with its lock."""

    def __init__(self, data: Path) -> None:
        self.host = socket.gethostname()
        self.pid = os.getpid()
        self.boot_id = boot_id()
        self.id = f"{self.host[:40]}-{self.pid}-{secrets.token_hex(4)}"
        self._folder = data / "workers"
        make_private_folder(self._folder)
        self._path = self._folder / f"{self.id}.lock"
        # Hidden until it is locked, or a neighbour that looks in between would take us for dead.
        hidden = self._folder / f".{self.id}"
        self._descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        hidden.rename(self._path)

    def dead_neighbours(self) -> list[str]:
        """Worker ids of this data directory whose process has ended."""
        return [path.stem for path in sorted(self._folder.glob("*.lock")) if path != self._path and _is_free(path)]

    def forget(self, worker_id: str) -> None:
        """A dead neighbour's affairs are in order: its lock file may go."""
        (self._folder / f"{worker_id}.lock").unlink(missing_ok=True)

    def close(self, *, in_order: bool) -> None:
        """If its affairs are not in order the file stays: the next supervisor of this machine sees to them at once."""
        if in_order:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def _is_free(path: Path) -> bool:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
    return False

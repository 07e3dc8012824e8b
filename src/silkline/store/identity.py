"""The worker ids of this machine, and how to prove that the process of a worker is dead.

An owner is a supervisor, or a command that runs one job in its own process. Each holds a lock on a file in the data
directory for as long as it lives. The kernel releases the lock when the process ends, however it ends; so a lock that
can be taken proves that its owner is dead, also after a reboot or a container restart, and when its pid was reused.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from pathlib import Path

from silkline.private_files import make_private_folder


def boot_id() -> str:
    """Identifies this boot of this machine and the pid namespace, in which a pid means one process. Empty: unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def new_worker_id() -> str:
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"


class Identity:
    """A worker id with its lock."""

    def __init__(self, data: Path) -> None:
        self.host = socket.gethostname()
        self.pid = os.getpid()
        self.boot_id = boot_id()
        self.id = new_worker_id()
        self._folder = data / "workers"
        make_private_folder(self._folder)
        self._path = self._folder / f"{self.id}.lock"
        # Hidden until it is locked: another supervisor that checks before that would treat this one as dead.
        hidden = self._folder / f".{self.id}"
        self._descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        hidden.rename(self._path)

    def dead_neighbours(self) -> list[str]:
        """Worker ids of this data directory whose process has ended."""
        return [
            path.stem for path in sorted(self._folder.glob("*.lock")) if path != self._path and _is_free(path) is True
        ]

    def forget(self, worker_id: str) -> None:
        """Remove the lock file of a dead worker, after its jobs were rescued."""
        (self._folder / f"{worker_id}.lock").unlink(missing_ok=True)

    def close(self, *, in_order: bool) -> None:
        """Release the lock. If jobs are left, the file stays, and the next supervisor of this machine rescues them."""
        if in_order:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_dead(data: Path, worker_id: str, *, pid: int | None, born_in: str) -> bool:
    """Whether a worker is certainly dead. `pid` and `born_in` (its `boot_id`) count if it has no lock file here."""
    free = _is_free(data / "workers" / f"{worker_id}.lock") if _is_name(worker_id) else None
    if free is not None:
        return free
    return bool(pid and born_in and born_in == boot_id() and not Path(f"/proc/{pid}").exists())


def _is_name(worker_id: str) -> bool:
    return worker_id == Path(worker_id).name


def _is_free(path: Path) -> bool | None:
    """Whether the lock is free. None: the file does not exist, or it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # A shared lock, so that two processes that check at the same time do not look like the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)

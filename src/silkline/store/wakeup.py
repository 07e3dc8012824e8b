"""Wakes supervisors that use SQLite, through named pipes beside the database file, one for each supervisor.

SQLite cannot notify. The process that adds a job writes a byte into every pipe. A pipe without a reader belongs to a
dead supervisor and is removed. A lost wakeup costs one poll interval, so every failure here is ignored on purpose.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from silkline.private_files import make_private_folder


class PipeListener:
    """The listening end."""

    def __init__(self, folder: Path, name: str) -> None:
        make_private_folder(folder)
        self._path = folder / name
        # Hidden until it is open: a process that writes before that would treat it as the pipe of a dead supervisor.
        hidden = folder / f".{name}.{os.getpid()}"
        hidden.unlink(missing_ok=True)
        os.mkfifo(hidden, 0o600)
        # Opened for writing too, so that the pipe never reports end of file.
        self._descriptor = os.open(hidden, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        hidden.rename(self._path)

    def fileno(self) -> int:
        return self._descriptor

    def drain(self) -> list[str]:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._descriptor, 4096):
                pass
        return [""]

    def close(self) -> None:
        os.close(self._descriptor)
        self._path.unlink(missing_ok=True)


def write_to_pipes(folder: Path) -> None:
    """Wake every listener."""
    try:
        pipes = [pipe for pipe in folder.iterdir() if not pipe.name.startswith(".")]
    except OSError:
        return
    for pipe in pipes:
        try:
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENXIO:
                with contextlib.suppress(OSError):
                    pipe.unlink()
            continue
        try:
            with contextlib.suppress(OSError):
                os.write(descriptor, b"!")
        finally:
            os.close(descriptor)

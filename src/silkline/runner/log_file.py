"""The log file of a job, `logs/<job>.log`: text, or JSON as in silkline/log.py."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from silkline.log import JOB_LOGGER, json_line, stamp
from silkline.private_files import FILE_MODE, make_private_folder

# A line may hold text of a crawled page. Escaped control characters cannot change the terminal of a reader.
_ESCAPED = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160)) if chr(code) not in "\t\n"}


def log_path(data: Path, job_id: str) -> Path:
    """The log file of a job in this data directory."""
    return data / "logs" / f"{job_id}.log"


def is_json(path: Path) -> bool:
    """Whether the lines of a log file are JSON, so that a line which is added later has the same format."""
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError:
        return False


def printable(text: str) -> str:
    """The text with its control characters escaped."""
    return text if text.isprintable() else text.translate(_ESCAPED)


class LogFile:
    """The file is rotated once when it reaches the limit. If the disk is full, lines are lost and the job continues."""

    def __init__(self, path: Path, limit: int = sys.maxsize, *, as_json: bool = False) -> None:
        self._path = path
        self._limit = limit
        self._as_json = as_json
        self._descriptor: int | None = None
        self._size = 0

    def write_line(self, at: datetime, level: str, attempt: int, text: str, **more: Any) -> None:
        """Add a line. The fields in `more` are only written as JSON."""
        if self._as_json:
            line = json_line(at, level, JOB_LOGGER, text, attempt=attempt, **more)
        else:
            line = f"{stamp(at)} {level.upper():7} [{attempt}] {text}"
        data = f"{line}\n".encode(errors="replace")
        try:
            if self._descriptor is None or self._size + len(data) > self._limit:
                self._open(rotate=self._descriptor is not None)
            if self._descriptor is not None:
                self._size += os.write(self._descriptor, data)
        except OSError:
            self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self, *, rotate: bool) -> None:
        self.close()
        make_private_folder(self._path.parent)
        if rotate or (self._path.exists() and self._path.stat().st_size >= self._limit):
            self._path.replace(self._path.with_suffix(".log.1"))
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        self._size = os.fstat(self._descriptor).st_size

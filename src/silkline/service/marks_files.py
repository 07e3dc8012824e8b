"""The files in which attempts mark what they read. They name the input that was read when an attempt died."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from silkline.config import Settings
from silkline.model.job import Job
from silkline.model.url import origin_of
from silkline.reading_marks import LEADER, ROBOTS, RULES, Mark, MarksFile

FOLDER = "marks"
KEEP_SECONDS = 7 * 86_400.0


def marks_path(settings: Settings, job: Job) -> Path:
    """One file for each attempt."""
    return settings.data / FOLDER / f"{job.id}-{job.run_lease}.marks"


def left_behind(settings: Settings, job: Job) -> list[str]:
    """The inputs that an attempt of a dead supervisor was reading, if its file is on this machine."""
    with contextlib.suppress(OSError, ValueError):
        marks = MarksFile.open(marks_path(settings, job))
        try:
            return inputs_of(blamed_of(marks, all_of_them=False))
        finally:
            marks.close()
    return []


def forget_old(settings: Settings) -> None:
    """Remove the files of attempts that other machines took over long ago."""
    for path in (settings.data / FOLDER).glob("*.marks"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > KEEP_SECONDS:
                path.unlink()


def blamed_of(marks: MarksFile, *, all_of_them: bool) -> list[Mark]:
    """The input that the runner itself was reading. If none, and with `all_of_them`: those of its other processes."""
    own = marks.mark_of(LEADER)
    if own is not None:
        return [own]
    return marks.active() if all_of_them else []


def inputs_of(marks: list[Mark]) -> list[str]:
    """The names under which inputs are blamed: a URL, or the origin of a robots.txt."""
    return [origin_of(mark.name) if mark.kind in (ROBOTS, RULES) else mark.name for mark in marks]

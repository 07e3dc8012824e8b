"""Reads the events of one job, or of all jobs, from the database. `events` sends them.

The id of an event consists of numbers that only grow and that every process reads from the same rows: the last log
line, the number of checkpoints, and the time of the last change. So `Last-Event-ID` means the same on every server.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from silkline.api.answer_models import LineView, to_json
from silkline.api.views import line_view
from silkline.errors import NotFound
from silkline.model.database import Database
from silkline.model.job import ENDED, Job, Status
from silkline.model.ledger import Counts
from silkline.model.redaction import secrets_of
from silkline.store import jobs, logs, urls
from silkline.store.job_view import KeptHtmlView, ProgressView, job_view

PROGRESS_EVERY = 1.0
LAST_LINES = timedelta(seconds=4)  # a supervisor may store the last lines some seconds after the end of the job
LINES = 500
LINES_SIZE = 262_144  # characters of one event
TAIL = 100


@dataclass(slots=True)
class ProgressEvent(ProgressView):
    """The data of the event `progress`."""

    live: dict[str, Any]


_NO_PROGRESS = ProgressView(0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, None, None, None, {}, KeptHtmlView(0, 0, 0))
_COUNTS = tuple(each.name for each in fields(ProgressView))


@dataclass(frozen=True, slots=True)
class Cursor:
    """How much of a job a listener has received."""

    line: int = 0
    checkpoints: int = 0
    changed: int = 0

    def __str__(self) -> str:
        return f"{self.line}.{self.checkpoints}.{self.changed}"


def read_cursor(text: str) -> Cursor | None:
    """The cursor in a `Last-Event-ID`. None: the text is not a cursor."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isdecimal() and part.isascii() and len(part) < 19 for part in parts):
        return None
    return Cursor(*map(int, parts))


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One message to all listeners. `ended`: no further event follows."""

    name: str
    id: str
    data: bytes
    ended: bool = False

    def frame(self) -> bytes:
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (self.id.encode(), self.name.encode(), self.data)


class JobSource:
    """One job. `poll` runs in a thread, one call at a time.

    Between the polls it keeps no job: hundreds of callers may wait, and the metadata of a job may become a megabyte.
    """

    def __init__(self, database: Database, job_id: str) -> None:
        self._database = database
        self._id = job_id
        self._shown = b""  # a digest of the status that was sent last
        self._counted: tuple[int, datetime | None] = (-1, None)
        self._progress_at = 0.0
        self._quiet = False
        self.cursor = Cursor()
        self.status: Status | None = None  # of the job; None: it was not found

    def poll(self) -> list[StreamEvent]:
        """The events since the last poll."""
        first = self.status is None
        try:
            job, counts, now = read_job(self._database, self._id)
        except NotFound:
            return [StreamEvent("gone", str(self.cursor), b"{}", ended=True)]
        if first:
            newest = logs.tail(self._database, job.id, wanted=1)
            self.cursor = Cursor(newest[-1].id if newest else 0)
        self.status = job.status
        return [*self._status_event(job, counts, now), *self._line_events(job), *self._end_event(job, now)]

    def _status_event(self, job: Job, counts: Counts, now: datetime) -> list[StreamEvent]:
        view = job_view(job, counts, now)
        # Neither the counts nor a heartbeat alone are a change of the status.
        shown = hashlib.sha256(to_json(replace(view, progress=_NO_PROGRESS, last_heartbeat=None))).digest()
        counted = (counts.checkpoints, counts.updated_at)
        changed, moved = shown != self._shown, counted != self._counted
        if not changed and (not moved or time.monotonic() - self._progress_at < PROGRESS_EVERY):
            return []
        self._quiet = False
        self._shown, self._counted, self._progress_at = shown, counted, time.monotonic()
        self.cursor = Cursor(self.cursor.line, counts.checkpoints, microseconds(job.updated_at))
        if not changed:
            progress = ProgressEvent(**{name: getattr(view.progress, name) for name in _COUNTS}, live=counts.live)
            return [StreamEvent("progress", str(self.cursor), to_json(progress))]
        return [StreamEvent("status", str(self.cursor), to_json(view))]

    def _line_events(self, job: Job) -> list[StreamEvent]:
        events = line_events(self._database, job, self.cursor, upto=None)
        if events:
            self._quiet = False
            self.cursor = Cursor(int(events[-1].id.partition(".")[0]), self.cursor.checkpoints, self.cursor.changed)
        return events

    def _end_event(self, job: Job, now: datetime) -> list[StreamEvent]:
        """The event `end`, once the job has ended and its last log lines had time to arrive."""
        if job.status not in ENDED or (job.finished_at and now - job.finished_at < LAST_LINES):
            return []
        if not self._quiet:
            self._quiet = True
            return []
        return [StreamEvent("end", str(self.cursor), b"{}", ended=True)]


def read_job(database: Database, id: str) -> tuple[Job, Counts, datetime]:
    """The job as in a list: every listener of a job gets it, and each poll reads it."""
    return jobs.outline(database, id), urls.counts(database, id), database.now()


def line_events(database: Database, job: Job, cursor: Cursor, *, upto: int | None) -> list[StreamEvent]:
    """The next log lines after the cursor, and not after `upto`, as one event of limited size, or none."""
    lines: list[LineView] = []
    size, secrets, last = 0, secrets_of(job.payload), cursor.line
    for line in logs.page(database, job.id, after=cursor.line, wanted=LINES):
        size += len(line.message)
        if (upto is not None and line.id > upto) or (lines and size > LINES_SIZE):
            break
        lines.append(line_view(line, secrets))
        last = line.id
    if not lines:
        return []
    id = Cursor(last, cursor.checkpoints, cursor.changed)
    return [StreamEvent("logs", str(id), to_json({"lines": lines}))]


def catch_up(database: Database, job_id: str, seen: Cursor | None, upto: Cursor) -> Iterator[StreamEvent]:
    """The first events of a new or returning listener: the current status, and the log lines that it missed.

    Each is read when the one before was sent: a job may have very many lines.
    """
    job, counts, now = read_job(database, job_id)
    state = Cursor(seen.line if seen else 0, counts.checkpoints, microseconds(job.updated_at))
    if seen != state:
        yield StreamEvent("status", str(state), to_json(job_view(job, counts, now)))
    if seen is None:
        tail = logs.tail(database, job_id, wanted=TAIL)
        seen = Cursor(tail[0].id - 1 if tail else upto.line)
    while seen.line < upto.line:
        more = line_events(database, job, Cursor(seen.line, state.checkpoints, state.changed), upto=upto.line)
        if not more:
            break
        yield more[0]
        seen = Cursor(int(more[0].id.partition(".")[0]))


class OverviewSource:
    """All jobs: an event after each change, with the number of jobs in each state."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._before: Any = None
        self._number = 0
        self.cursor = Cursor()

    def poll(self) -> list[StreamEvent]:
        counts = {status.value: number for status, number in jobs.counts(self._database).items()}
        running = jobs.running_states(self._database)
        states = urls.counts_of(self._database, [job.id for job in running])
        now = (
            counts,
            sorted((job.id, job.run_lease, job.desired) for job in running),
            sorted((id, state.checkpoints) for id, state in states.items()),
        )
        if now == self._before:
            return []
        self._before = now
        self._number += 1
        return [StreamEvent("jobs", str(self._number), to_json(counts))]


def microseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)

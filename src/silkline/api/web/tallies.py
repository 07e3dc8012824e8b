"""Counts that have to read a whole ledger: while a crawl runs each is kept for a while, longer where it took longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from silkline.model.job import Job, Status
from silkline.store import urls
from silkline.store.database import Database

YOUNG = 2.0
PATIENCE = 20  # a count may take a twentieth of the time at most
KEPT = 500


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted, at which checkpoint of the job, and until when that will do."""

    value: Any
    checkpoint: Any
    until: float


class Tallies:
    """Remembers what was counted, by the name of the count and the job."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._found: dict[tuple[Any, ...], Tally] = {}

    def get(self, count: Callable[..., Any], job: Job, *arguments: Any) -> Any:
        """What `count` gives. Of a job that does not run it is never older than the job's last checkpoint."""
        key = (count.__name__, job.id, *arguments)
        counts = urls.counts(self._database, job.id)
        checkpoint = (counts.checkpoints, counts.updated_at, counts.failed)
        with self._lock:
            found = self._found.get(key)
        began = time.monotonic()
        if found and (found.checkpoint == checkpoint or (job.status is Status.RUNNING and began < found.until)):
            return found.value
        value = count(self._database, job.id, *arguments)
        until = time.monotonic() + max(YOUNG, PATIENCE * (time.monotonic() - began))
        with self._lock:
            if len(self._found) >= KEPT:
                self._found.clear()
            self._found[key] = Tally(value, checkpoint, until)
        return value

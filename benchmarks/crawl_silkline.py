"""The Silkline crawler of benchmarks/growth.py: claims a job and crawls it, without a supervisor."""

import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from silkline.config import load
from silkline.kinds import site
from silkline.model.database import Database
from silkline.model.job import End, Job
from silkline.model.kind import Context
from silkline.model.ledger import Checkpoint, Counts
from silkline.model.spec import SiteSpec, validate
from silkline.reading_marks import ReadingMarks
from silkline.store import jobs, urls
from silkline.store.opening import open_database


class NoOrders:
    order: End | None = None

    def wait(self, seconds: float) -> End | None:
        return None

    def subscribe(self, callback: Callable[[End], None]) -> None:
        """There are no orders here."""

    def subscribe_to_links(self, callback: Callable[[], None]) -> None:
        """There are no other shards here."""


class Progress:
    def __init__(self, database: Database, job: Job) -> None:
        self.database = database
        self.job = job

    def record(self, checkpoint: Checkpoint) -> Counts:
        return urls.record(self.database, self.job, checkpoint)

    def report(self) -> None:
        """Nothing to do: no supervisor waits for a sign of life."""


if __name__ == "__main__":
    database = open_database(sys.argv[1], upgrade=False)
    job = jobs.claim_one(database, "benchmark", "here", sys.argv[2])
    spec = validate(SiteSpec, job.payload)
    marks = Path(tempfile.mkdtemp()) / "benchmark.marks"  # a supervisor also creates this file
    ReadingMarks.create(marks)
    settings = load().settings.for_kinds()
    site.run(Context(spec, NoOrders(), Progress(database, job), logging.getLogger("site"), settings, str(marks)))

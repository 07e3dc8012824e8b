"""The Silkline crawler of benchmarks/growth.py: claims a job and crawls it, without a supervisor."""

import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from silkline.config import load
from silkline.kinds import registry, site
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.reading_marks import ReadingMarks
from silkline.store import jobs, urls
from silkline.store.opening import open_database


class NoOrders:
    order: End | None = None

    def wait(self, seconds: float) -> End | None:
        return None

    def subscribe(self, callback: Any) -> None:
        """There are no orders here."""


class Progress:
    def __init__(self, database: Any, job: Any) -> None:
        self.database = database
        self.job = job

    def record(self, checkpoint: Any) -> Any:
        return urls.record(self.database, self.job, checkpoint)

    def report(self, **live: Any) -> None:
        """Ignored: the benchmark does not show the progress."""


if __name__ == "__main__":
    database = open_database(sys.argv[1], upgrade=False)
    job = jobs.claim_one(database, "benchmark", "here", sys.argv[2])
    spec = registry.check_payload(registry.kind_named("site"), job.payload)
    marks = Path(tempfile.mkdtemp()) / "benchmark.marks"  # a supervisor also creates this file
    ReadingMarks.create(marks)
    settings = load().settings.for_kinds()
    site.run(Context(spec, NoOrders(), Progress(database, job), logging.getLogger("site"), settings, str(marks)))

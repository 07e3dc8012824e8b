"""A runner for tests: claims one job, crawls it in this process, and stores how it ended. Exit code 0: it completed.

    python run_site.py DATABASE JOB TUNING NAMES

`TUNING` is JSON for the engine's bounds. `NAMES` is JSON for a table instead of DNS, with the answers to each name one
after the other, or `{}`. A line on standard input (`paused`, `stopped`, …) is an order. Prints how it
ended, and by how many MB the memory of this process grew.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import tempfile
import threading
from pathlib import Path

import msgspec

from silkline.config import load
from silkline.crawl import fetcher_setup
from silkline.crawl.plan import Tuning
from silkline.kinds import registry, specs
from silkline.kinds.site import crawl
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.reading_marks import ReadingMarks
from silkline.store import jobs, urls
from silkline.store.opening import open_database
from tests.crawl.hostile_client import Names


class Control:
    def __init__(self) -> None:
        self.order: End | None = None
        self._came = threading.Event()
        self._callbacks = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.order = End(line.strip())
            self._came.set()
            for callback in self._callbacks:
                callback(self.order)

    def wait(self, seconds: float) -> End | None:
        self._came.wait(seconds)
        return self.order

    def subscribe(self, callback) -> None:
        self._callbacks.append(callback)
        if self.order is not None:
            callback(self.order)


class Progress:
    """Checks at every checkpoint that the numbers add up."""

    def __init__(self, database, job) -> None:
        self.database = database
        self.job = job

    def record(self, checkpoint):
        counts = urls.record(self.database, self.job, checkpoint)
        parts = counts.queued + counts.in_flight + counts.done + counts.unchanged + counts.failed + counts.skipped
        assert counts.discovered == parts, counts
        return counts

    def report(self) -> None:
        pass


def main(url: str, job_id: str, tuning: str, names: str) -> None:
    logging.basicConfig(level=logging.INFO)
    table = json.loads(names)
    if table:
        fetcher_setup.SystemResolver = lambda **_: Names(
            {host: [tuple(each) for each in given] for host, given in table.items()}
        )
    database = open_database(url, upgrade=False)
    job = jobs.claim_one(database, "test-worker", "test-host", job_id)
    spec = specs.check_payload(registry.kind_named(job.kind), job.payload)
    with tempfile.NamedTemporaryFile(suffix=".marks", delete=False) as file:
        ReadingMarks.create(Path(file.name))
    settings = load().settings.for_kinds()
    context = Context(spec, Control(), Progress(database, job), logging.getLogger("site"), settings, file.name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    order = crawl(context, msgspec.json.decode(tuning, type=Tuning))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(order or "completed", grown, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Everything that `/metrics` shows: the meters and processes of this machine, and the database."""

from __future__ import annotations

import logging
from pathlib import Path

from silkline.errors import StoreError
from silkline.metrics.exposition import exposition
from silkline.metrics.gather import Gathered, gather
from silkline.metrics.machine import look_at_machine
from silkline.metrics.process import FOLDER
from silkline.model.database import Database
from silkline.model.job import Status
from silkline.store import checkpoint_counts, jobs, workers
from silkline.store.job_counts import job_counts

log = logging.getLogger("silkline.metrics")


class MetricsText:
    """Reads everything anew each time. If the database does not answer, only its families are missing."""

    def __init__(self, database: Database, data: Path, *, watermark: int, stale_after: float) -> None:
        self._database = database
        self._data = data
        self._watermark = watermark
        self._stale_after = stale_after

    def text(self) -> str:
        gathered = gather(self._data / FOLDER)
        look_at_machine(gathered, self._data, self._watermark)
        try:
            self._ask_database(gathered)
        except StoreError as error:
            log.warning("the metrics of the database are missing: %s", error)
        return exposition(gathered)

    def _ask_database(self, gathered: Gathered) -> None:
        self._add_checkpoints(gathered)
        counts = job_counts(self._database)
        for status in Status:
            gathered.set("silkline_jobs", 0, status.value)
        for (kind, status_name), number in counts.by_kind.items():
            gathered.set("silkline_jobs_by_kind", number, kind, status_name)
            gathered.numbers["silkline_jobs"][status_name,] += number
        for (kind, tenant), number in counts.waiting.items():
            gathered.set("silkline_queue_jobs", number, kind, tenant)
        for kind, seconds in counts.longest_wait.items():
            gathered.set("silkline_queue_oldest_seconds", seconds, kind)
        gathered.set("silkline_heartbeat_age_seconds", counts.heartbeat_age)
        gathered.set("silkline_urls_pending", jobs.pending_total(self._database))
        alive = workers.alive(self._database, self._stale_after)
        gathered.set("silkline_workers_alive", len(alive))
        gathered.set("silkline_worker_slots", sum(worker.slots for worker in alive))

    def _add_checkpoints(self, gathered: Gathered) -> None:
        total = checkpoint_counts.total(self._database, gathered.meters)
        for state in ("done", "unchanged", "failed", "skipped"):
            gathered.set("silkline_urls_settled_total", total[state], state)
        gathered.set("silkline_urls_discovered_total", total["discovered"])
        gathered.set("silkline_urls_requeued_total", total["requeued"])
        gathered.set("silkline_page_bytes_total", total["bytes"])
        gathered.set("silkline_results_total", total["results"])
        gathered.set("silkline_checkpoints_total", total["checkpoints"])

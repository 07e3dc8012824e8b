"""Renews the leases in its own thread, so that a busy crawl cannot delay it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.usage import WorkerUsage
from silkline.service.background_thread import BackgroundThread
from silkline.service.runner_process import RunnerProcess, boot_clock
from silkline.store import jobs

RETRY = 1.0  # seconds after a heartbeat that could not be stored

log = logging.getLogger("silkline.heartbeat")


class Heartbeat(BackgroundThread):
    """Stores every few seconds that this supervisor and its jobs are alive, and learns which jobs it has lost."""

    def __init__(
        self,
        database: Database,
        worker_id: str,
        *,
        interval: float,
        held: Callable[[], list[RunnerProcess]],
        describe: Callable[[], tuple[int, str]],
        forgotten: Callable[[], None],
        usage: Callable[[], WorkerUsage | None] = lambda: None,
    ) -> None:
        super().__init__("heartbeat")
        self._database = database
        self._worker_id = worker_id
        self._interval = interval
        self._held = held
        self._describe = describe
        self._forgotten = forgotten
        self._usage = usage
        self._unknown_before: set[tuple[str, int]] = set()
        self.renewed_at = boot_clock()
        self.unknown: set[tuple[str, int]] = set()

    def start(self) -> None:
        self.renewed_at = boot_clock()  # this process has just registered; the start may have taken some time
        super().start()

    def _run(self) -> None:
        wait = say_after = self._interval
        while not self._stopping.wait(wait):
            try:
                self.beat()
            except Exception as error:  # catch every error: without heartbeats all jobs of this supervisor are killed
                wait, late = min(self._interval, RETRY), boot_clock() - self.renewed_at
                if late >= say_after:
                    unexpected = not isinstance(error, StoreError)
                    log.warning("no heartbeat could be stored for %.0f s: %s", late, error, exc_info=unexpected)
                    say_after = 2 * late
            else:
                if say_after != self._interval:
                    log.warning("heartbeats are stored again")
                wait = say_after = self._interval

    def beat(self) -> None:
        """Renew once. A job that the database does not return is no longer ours: kill its processes at once."""
        asked_at, children = boot_clock(), self._held()
        slots, state = self._describe()
        usage = self._usage()
        renewed = jobs.heartbeat(self._database, self._worker_id, slots=slots, state=state, usage=usage)
        if renewed is None:
            self._forgotten()
            return
        self.renewed_at = asked_at
        ours = {(held.id, held.run_lease) for held in renewed}
        for child in children:
            if child.key not in ours and not child.finishing:
                lost = "job %s no longer belongs to this supervisor (lease %d): killing its processes"
                log.warning(lost, *child.key, extra=child.job.log_fields)
                child.lost = True
                child.kill()
        # Jobs that are ours in the database but unknown here: the answer to their claim was lost. Believe it only after
        # two heartbeats, because a new job may be starting right now.
        unknown = ours - {child.key for child in self._held()} - {child.key for child in children}
        self.unknown = unknown & self._unknown_before
        self._unknown_before = unknown

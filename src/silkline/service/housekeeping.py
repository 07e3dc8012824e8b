"""The slow periodic work of a supervisor, in its own thread: watchdog, dead supervisors of this machine, cleaner, and
bookings of hosts that have ended."""

from __future__ import annotations

import logging
import time
from functools import partial

from silkline.config import Settings
from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.job import Backoff
from silkline.runner.leftovers import kill_tagged
from silkline.service import cgroup
from silkline.service.background_thread import BackgroundThread
from silkline.service.cleaner import Cleaner
from silkline.service.marks_files import forget_old, left_behind
from silkline.service.watchdog import Watchdog
from silkline.store import bookings, workers
from silkline.store.identity import Identity

log = logging.getLogger("silkline.housekeeping")


class Housekeeping(BackgroundThread):
    def __init__(self, database: Database, identity: Identity, settings: Settings, backoff: Backoff) -> None:
        super().__init__("housekeeping")
        self._database = database
        self._identity = identity
        self._cleaner_interval = settings.cleaner_interval
        self._watchdog = Watchdog(
            database,
            identity,
            settings.data,
            stale_after=settings.stale_after,
            interval=settings.watchdog_interval,
            backoff=backoff,
            left_behind=partial(left_behind, settings),
        )
        forget_old(settings)
        self._cleaner = Cleaner(database, settings)
        self._cleaned_at = time.monotonic()

    def settle_dead_neighbours(self) -> None:
        """For each dead supervisor of this machine: kill the processes that it left, then take its jobs back."""
        dead = self._identity.dead_neighbours()
        for worker_id in dead:
            killed = kill_tagged(worker_id)
            if killed:
                log.warning("killed %d processes that the dead supervisor %s left", killed, worker_id)
        if dead:
            self._watchdog.take_back_jobs(dead)
        for worker_id in dead:
            workers.retire(self._database, worker_id)
            cgroup.remove_of(worker_id)
            self._identity.forget(worker_id)

    def _run(self) -> None:
        """Check at once for the first time: the silence of a job is measured from the first check that saw it."""
        while True:
            try:
                self.settle_dead_neighbours()
                self._watchdog.look()
                bookings.sweep(self._database)
                if time.monotonic() - self._cleaned_at >= self._cleaner_interval:
                    self._cleaned_at = time.monotonic()
                    self._cleaner.clean()
            except StoreError as error:
                log.warning("the watchdog run failed: %s", error)
            except Exception:
                log.exception("the watchdog run failed")
            if self._stopping.wait(self._watchdog.wait()):
                return

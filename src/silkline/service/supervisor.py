"""The long-lived service of one machine or container: it claims due jobs of every kind until it is told to end."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from typing import Final

from silkline.config import Settings
from silkline.errors import DatabaseRemoved, SilklineError
from silkline.kinds import registry
from silkline.model.job import Job
from silkline.service.child_program import ChildProgram
from silkline.service.job_loop import IDLE_POLLS, JobLoop
from silkline.service.metrics_server import MetricsListener
from silkline.store import jobs, workers

log = logging.getLogger("silkline.supervisor")


class Supervisor:
    """SIGTERM and SIGINT end it: running jobs save a checkpoint and go back to the queue. SIGHUP reads the slots again.

    `reload` reads the settings again. `child_program` is a program to keep alive (`silkline serve`). `metrics` is where
    Prometheus asks.
    """

    signals: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

    def __init__(
        self,
        settings: Settings,
        *,
        reload: Callable[[], Settings] | None = None,
        child_program: ChildProgram | None = None,
        metrics: MetricsListener | None = None,
    ) -> None:
        self._settings = settings
        self._reload = reload
        self._child_program = child_program
        self._metrics = metrics
        self._idle = False
        self.slots = settings.slots

    def run(self) -> int:
        return JobLoop(self._settings, self, child_program=self._child_program, metrics=self._metrics).run()

    def kinds(self) -> list[str]:
        return registry.claimable(test_kinds=self._settings.test_kinds, crawl4ai=self._settings.crawl4ai)

    def registered(self) -> None:
        self._idle = False

    def claim(self, loop: JobLoop, free: int) -> list[Job]:
        claimed = jobs.claim(loop.database, loop.identity.id, loop.identity.host, self.kinds(), free)
        if self._idle and len(claimed) == free:
            self._set_idle(loop, False)
        if not claimed:
            self._wait_for_jobs(loop)
        return claimed

    def handle_signal(self, loop: JobLoop, number: int) -> None:
        if number == signal.SIGHUP and self._reload is not None:
            self._read_settings_again(loop, self._reload)
        elif number in (signal.SIGTERM, signal.SIGINT):
            loop.start_drain()

    def database_removed(self, error: DatabaseRemoved) -> None:
        """Wait: a file system may come back, and a new database must not take the place of the old one."""

    def _wait_for_jobs(self, loop: JobLoop) -> None:
        """Nothing is due: ask for notifications, look once more, then wait until the next job is due at the latest."""
        if not self._idle:
            self._set_idle(loop, True)
            loop.claim_after(0.0)
            return
        wait = self._settings.poll_interval * (IDLE_POLLS if loop.listening else 1)
        due = jobs.next_due(loop.database)
        if due is not None:
            wait = min(wait, max(0.0, (due - loop.database.now()).total_seconds()))
        loop.claim_after(wait)

    def _set_idle(self, loop: JobLoop, idle: bool) -> None:
        workers.set_idle(loop.database, loop.identity.id, idle)
        self._idle = idle

    def _read_settings_again(self, loop: JobLoop, reload: Callable[[], Settings]) -> None:
        try:
            self.slots = reload().slots
        except SilklineError as error:
            log.error("the settings stay as they are, %d slots: %s", self.slots, error)
            return
        log.info("settings read again: %d slots", self.slots)
        loop.claim_after(0.0)

"""The run of one job in the foreground, for `silkline crawl` and `silkline resume`: it ends when the job ends."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable

from silkline.config import Settings
from silkline.errors import DatabaseRemoved, Refused, SilklineError
from silkline.kinds.registry import refuse_external
from silkline.model.job import Job, Status, Verb
from silkline.model.sharding import OWNER
from silkline.service.job_loop import JobLoop
from silkline.store import jobs, shards

log = logging.getLogger("silkline.supervisor")


class ForegroundRun:
    """SIGINT and SIGHUP pause the job, a second SIGINT does not wait for the checkpoint. SIGTERM puts it back.

    `signals_caught` is called when signals are caught: from then on a signal ends the job in good order.
    """

    slots = 1

    def __init__(self, settings: Settings, job_id: str, *, signals_caught: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self._job_id = job_id
        self._signals_caught = signals_caught
        self._claimed = False
        self._paused = False
        hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)  # ignored under nohup
        self.signals = (signal.SIGTERM, signal.SIGINT, *hangup, signal.SIGCHLD)

    def run(self) -> int:
        return JobLoop(self._settings, self, signals_caught=self._signals_caught).run()

    def kinds(self) -> list[str]:
        """None: it takes no other job from the queue."""
        return []

    def registered(self) -> None:
        """Nothing to do."""

    def claim(self, loop: JobLoop, free: int) -> list[Job]:
        """Claim the job if it is queued; end the run if the job neither waits nor runs any more.

        While another supervisor runs the job, this run waits. If that supervisor dies, our watchdog puts the job back
        into the queue and this run continues it.
        """
        job = jobs.outline(loop.database, self._job_id)
        refuse_external(job.kind)
        if job.worker_id == OWNER:
            self.slots = max(self.slots, self._settings.slots)
            return shards.claim(loop.database, loop.identity.id, loop.identity.host, job.id, free)
        if job.status is not Status.QUEUED:
            if job.status is not Status.RUNNING:
                loop.start_drain()
            return []
        wait = (job.run_at - loop.database.now()).total_seconds() if self._claimed else 0.0
        if wait > 0:
            loop.claim_after(min(wait, self._settings.poll_interval))
            return []
        self._claimed = True
        try:
            return [jobs.claim_one(loop.database, loop.identity.id, loop.identity.host, self._job_id)]
        except Refused:
            return []  # another supervisor claimed it first; the next turn looks again

    def handle_signal(self, loop: JobLoop, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGHUP) and not loop.draining:
            if number == signal.SIGINT or not self._paused:  # a terminal that closes may send SIGHUP twice
                self._pause(loop)
        elif number in (signal.SIGTERM, signal.SIGINT):
            loop.start_drain()

    def database_removed(self, error: DatabaseRemoved) -> None:
        """The job is lost, so nothing is left to wait for."""
        raise error

    def _pause(self, loop: JobLoop) -> None:
        """Pause the job with a wish, like everybody else. The second time, do not wait for the checkpoint."""
        try:
            job = jobs.wish(loop.database, self._job_id, Verb.PAUSE)
            loop.read_wishes_now()
        except SilklineError as error:
            log.warning("%s", error)
            loop.start_drain()
            return
        if self._paused or job.status is not Status.RUNNING:
            loop.start_drain()
            loop.kill_all()
        self._paused = True

"""Rescues jobs whose supervisor is dead, and never a job whose supervisor is alive.

The watchdog measures with its own clock how long the heartbeat number of a job has not changed while checks succeeded.
So different clocks on different machines cause no error. After an outage of the database, or after this machine slept,
the full time starts again for every job.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, Decision, End, Job, decide
from silkline.runner.rescue import rescue
from silkline.service.runner_process import boot_clock
from silkline.store import blames, jobs
from silkline.store.identity import Identity

SHORTEST_WAIT = 0.1

log = logging.getLogger("silkline.watchdog")


@dataclass(slots=True)
class Sighting:
    """The heartbeat number of a job, and when it was first seen."""

    heartbeat_seq: int
    since: float


class Silence:
    """Measures how long each running job has sent no heartbeat while the checks succeeded."""

    def __init__(self, stale_after: float, interval: float) -> None:
        self._stale_after = stale_after
        self._blind_after = 2 * interval + 1.0
        self._seen: dict[tuple[str, int], Sighting] = {}
        self._looked_at: float | None = None

    def look(self, running: list[Job], now: float) -> list[Job]:
        """Record this check. Returns the jobs that have been silent for too long."""
        if self._looked_at is None or now - self._looked_at > self._blind_after:
            self._seen.clear()
        self._looked_at = now
        seen: dict[tuple[str, int], Sighting] = {}
        for job in running:
            key = (job.id, job.run_lease)
            before = self._seen.get(key)
            moved = before is None or before.heartbeat_seq != job.heartbeat_seq
            seen[key] = Sighting(job.heartbeat_seq, now) if moved or before is None else before
        self._seen = seen
        return [job for job in running if now - seen[job.id, job.run_lease].since >= self._stale_after]

    def next_at(self) -> float | None:
        """The time at which the first job will have been silent for too long, if it sends no heartbeat until then."""
        moments = [sighting.since + self._stale_after for sighting in self._seen.values()]
        return min(moments) if moments else None

    def blind(self) -> None:
        """A check failed: start measuring again."""
        self._looked_at = None


class Watchdog:
    """Checks all running jobs of the database that other supervisors own."""

    def __init__(
        self,
        database: Database,
        identity: Identity,
        data: Path,
        *,
        stale_after: float,
        interval: float,
        backoff: Backoff,
        left_behind: Callable[[Job], list[str]] = lambda job: [],
    ) -> None:
        self._database = database
        self._identity = identity
        self._data = data
        self._backoff = backoff
        self._left_behind = left_behind
        self._stale_after = stale_after
        self._interval = interval
        self._silence = Silence(stale_after, interval)

    def look(self) -> int:
        """Check once. Returns how many jobs were rescued. After an outage the measurement starts again."""
        try:
            running = jobs.running(self._database)
        except BaseException:
            self._silence.blind()
            raise
        silent = self._silence.look([job for job in running if job.worker_id != self._identity.id], boot_clock())
        return sum(
            self.rescue(job, f"its supervisor on {job.host} was silent for more than {self._stale_after:g} s")
            for job in silent
        )

    def wait(self) -> float:
        """Seconds until the next check: the interval, or less if a job reaches the limit before."""
        next_at = self._silence.next_at()
        if next_at is None:
            return self._interval
        return min(self._interval, max(SHORTEST_WAIT, next_at - boot_clock()))

    def take_back_jobs(self, dead: list[str]) -> int:
        """Rescue the jobs of these dead supervisors at once. Returns how many."""
        lost = [job for job in jobs.running(self._database) if job.worker_id in dead]
        return sum(self.rescue(job, f"its supervisor on {job.host} died") for job in lost)

    def rescue(self, job: Job, why: str) -> bool:
        excused = blames.blame(self._database, job, self._left_behind(job))
        decision = self._decide(job, why, excused)
        owner = f"{why} (worker {job.worker_id}, runner {job.pid})"
        rescued = rescue(self._database, self._data, job, decision, owner)
        if rescued:
            log.warning("job %s rescued: %s; it is now %s", job.id, why, decision.status, extra=job.log_fields)
        return rescued

    def _decide(self, job: Job, why: str, excused: bool) -> Decision:
        counted = f"crash {job.crash_count + 1}, {job.max_retries} allowed"
        isolated = "the input that it was reading is read in an isolated process from now on"
        message = f"{why} ({isolated if excused else counted})"
        ended = AttemptEnd(End.CRASHED, "supervisor lost", message, excused=excused)
        return decide(
            job,
            ended,
            backoff=self._backoff,
            now=self._database.now(),
            jitter=random.random(),  # noqa: S311
        )

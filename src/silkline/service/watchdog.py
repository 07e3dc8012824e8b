"""Rescuing jobs whose supervisor is dead, and never one whose supervisor lives.

Silence is measured by our own clock, between looks that succeeded: how long has this job's heartbeat number not moved
while we were watching? So clocks that differ between machines cannot mislead it, and after an outage of the database,
or a sleep of our own, everybody gets the full time again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from silkline.model.job import AttemptEnd, Backoff, Decision, End, Job, decide
from silkline.runner.rescue import rescue
from silkline.service.runner_process import boot_clock
from silkline.store import blames, jobs
from silkline.store.database import Database
from silkline.store.identity import Identity

SHORTEST_WAIT = 0.1

log = logging.getLogger("silkline.watchdog")


@dataclass(slots=True)
class Sighting:
    """The heartbeat number a job had, and since when."""

    heartbeat_seq: int
    since: float


class Silence:
    """How long each running job has been silent, as far as we could see."""

    def __init__(self, stale_after: float, interval: float) -> None:
        self._stale_after = stale_after
        self._blind_after = 2 * interval + 1.0
        self._seen: dict[tuple[str, int], Sighting] = {}
        self._looked_at: float | None = None

    def look(self, running: list[Job], now: float) -> list[Job]:
        """The jobs that have been silent for too long."""
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
        """When the first of them will have been silent for too long, if it stays so."""
        moments = [sighting.since + self._stale_after for sighting in self._seen.values()]
        return min(moments) if moments else None

    def blind(self) -> None:
        """We could not look: what we saw before says nothing about now."""
        self._looked_at = None


class Watchdog:
    """Looks at every running job of the database, whoever owns it."""

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
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self._database = database
        self._identity = identity
        self._data = data
        self._backoff = backoff
        self._left_behind = left_behind
        self._clock = clock
        self._stale_after = stale_after
        self._interval = interval
        self._silence = Silence(stale_after, interval)

    def look(self) -> int:
        """One round; how many jobs were rescued. An outage makes it forget what it saw."""
        try:
            running = jobs.running(self._database)
        except BaseException:
            self._silence.blind()
            raise
        silent = self._silence.look([job for job in running if job.worker_id != self._identity.id], self._clock())
        return sum(
            self.rescue(job, f"its supervisor on {job.host} was silent for more than {self._stale_after:g} s")
            for job in silent
        )

    def wait(self) -> float:
        """Seconds until the next look: the interval, or less if a job will have been silent for too long before."""
        next_at = self._silence.next_at()
        if next_at is None:
            return self._interval
        return min(self._interval, max(SHORTEST_WAIT, next_at - self._clock()))

    def take_back_orphans(self, dead: list[str]) -> int:
        """Jobs of supervisors of this machine that are certainly dead, at once."""
        orphans = [job for job in jobs.running(self._database) if job.worker_id in dead]
        return sum(self.rescue(job, f"its supervisor on {job.host} died") for job in orphans)

    def rescue(self, job: Job, why: str) -> bool:
        excused = blames.blame(self._database, job, self._left_behind(job))
        decision = self._decide(job, why, excused)
        owner = f"{why} (worker {job.worker_id}, runner {job.pid})"
        rescued = rescue(self._database, self._data, job, decision, owner)
        if rescued:
            log.warning("job %s rescued: %s; it is now %s", job.id, why, decision.status)
        return rescued

    def _decide(self, job: Job, why: str, excused: bool) -> Decision:
        counted = f"crash {job.crash_count + 1}, {job.max_retries} allowed"
        message = f"{why} ({'what it was reading is read in isolation from now on' if excused else counted})"
        ended = AttemptEnd(End.CRASHED, "supervisor lost", message, excused=excused)
        return decide(
            job,
            ended,
            backoff=self._backoff,
            now=self._database.now(),
            jitter=random.random(),  # noqa: S311
        )

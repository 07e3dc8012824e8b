"""One crawl over three workers and one PostgreSQL, with kills at random: every page exactly once, counts that add up.

The long form (SILKLINE_CHAOS=long) has 5,000 pages on 200 hosts and at least 60 kills, those of the server included.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from silkline.model.job import LIVE, NewJob, Status
from silkline.store import jobs, results, shards, urls
from tests.crawl.harness import SyntheticWeb, closing
from tests.support.postgres import PostgresServer
from tests.support.supervisors import Yard, yard

LONG = os.environ.get("SILKLINE_CHAOS") == "long"
KILLS = 60 if LONG else 8
HOSTS, PAGES = (200, 25) if LONG else (24, 7)
SLOTS = 2
QUICK: dict[str, Any] = {"slots": SLOTS, "fence_after": 3.0, "stale_after": 4.0, "max_concurrent_http": 6}


class Fleet:
    """Three workers on one database, each with a data directory of its own, as on three machines."""

    def __init__(self, place: Yard, server: PostgresServer, chance: random.Random) -> None:
        self.yard = place
        self.server = server
        self.chance = chance
        self.kills: Counter[str] = Counter()
        self.workers = [place.start(f"machine-{number}", **QUICK) for number in range(3)]

    def strike(self) -> None:
        """Kill a worker with everything below it, a process of a shard, or the server."""
        victim = self.chance.choice(["worker", "runner", "runner", "child"] + (["server"] if LONG else []))
        if victim == "server":
            self.server.stop("immediate")
            self.server.start()
        elif victim == "worker":
            number = self.chance.randrange(3)
            self.workers[number].kill()
            self.workers[number] = self.yard.start(f"machine-{number}", **QUICK)
        else:
            found = self._processes(below_runners=victim == "child")
            if not found:
                return
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(found), signal.SIGKILL)
        self.kills[victim] += 1

    def _processes(self, *, below_runners: bool) -> list[int]:
        runners = [job.pid for job in jobs.running(self.yard.database) if job.pid]
        if not below_runners:
            return runners
        found = []
        for pid in runners:
            with suppress(psutil.NoSuchProcess):
                found += [child.pid for child in psutil.Process(pid).children(recursive=True)]
        return found


def looks_right(place: Yard, id: str, reachable: set[str]) -> None:
    """At any moment: the counts add up, and the counters are those of the rows."""
    counts = urls.counts(place.database, id)
    ended = counts.done + counts.unchanged + counts.failed + counts.skipped
    assert counts.discovered == counts.queued + counts.in_flight + ended
    assert counts.discovered <= len(reachable)
    assert (counts.failed, counts.skipped) == (0, 0)


@pytest.mark.timeout(3600 if LONG else 300)
def test_a_crawl_over_three_workers_survives_kills(own_postgres: PostgresServer, tmp_path: Path, figure: Any) -> None:
    chance = random.Random(os.environ.get("SILKLINE_SEED", "shards"))
    with (
        closing(SyntheticWeb(hosts=HOSTS, pages=PAGES, latency=0.02)) as web,
        yard(own_postgres.create_database(), tmp_path) as place,
    ):
        reachable = web.reachable()
        step = max(1, len(reachable) // (KILLS * 5 // 4 + 2))
        payload = {"url": web.start, "scope": "any", "speed": "max", "content": "none", "shards": 6, "fetchers": 2}
        private = {"allow_private": ["127.0.0.0/8"]}
        new = NewJob("site", {**payload, **private}, request_url=web.start, max_retries=1_000)
        id = jobs.enqueue(place.database, new)[0].id
        fleet = Fleet(place, own_postgres, chance)
        goal, deadline = step, time.monotonic() + (3000 if LONG else 200)
        web.slow_after(step)
        while (job := place.job(id)).status in LIVE and time.monotonic() < deadline:
            looks_right(place, id, reachable)
            if fleet.kills.total() < KILLS and urls.counts(place.database, id).done >= goal:
                fleet.strike()
                goal += step
                web.slow_after(step)
            elif fleet.kills.total() >= KILLS:
                web.slow_after(None)
            time.sleep(0.05)
        assert job.status is Status.COMPLETED, (job, fleet.kills, [str(each) for each in shards.of(place.database, id)])
        stored = Counter(result.final_url for result in results.every(place.database, id))
        assert stored == dict.fromkeys(reachable, 1)
        assert place.adds_up(id)
        attempts = sum(shard.attempt for shard in shards.of(place.database, id))
        fetched = sum(path != "/robots.txt" for _, _, path in web.log())
    assert fleet.kills.total() >= (KILLS if LONG else 5), fleet.kills
    again = fetched - len(reachable)
    figure.append(f"{len(reachable)} pages, {attempts} attempts, kills {dict(fleet.kills)}, {again} fetched again")

"""One crawl over three machines and one PostgreSQL, with kills at random: every page exactly once, counts that add up.

Each machine is a worker with a data directory and, if this process is root, a network of its own. The parent of the
shards has no process that could be killed: whoever is alive decides about it.
The long form (SILKLINE_CHAOS=long) has 6 shards, 5,000 pages on 200 hosts, and at least 60 kills, those of PostgreSQL
included.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from silkline.model.job import LIVE, NewJob, Status
from silkline.store import jobs, results, shards, urls
from tests.crawl.harness import SyntheticWeb
from tests.support.effort import LONG
from tests.support.networks import NONE, WEB_NETWORK, Networks, can_make_networks
from tests.support.postgres import PostgresServer
from tests.support.supervisors import Yard, yard

KILLS = 60 if LONG else 5
HOSTS, PAGES, SHARDS = (200, 26, 6) if LONG else (18, 6, 3)
DELAY = 0.1
"""Between two requests to one host."""
MACHINES = 3
QUICK: dict[str, Any] = {"slots": 2, "fence_after": 3.0, "stale_after": 4.0, "max_concurrent_http": 6}


class Fleet:
    """Three workers on one database, and the web that they crawl."""

    def __init__(self, server: PostgresServer, folder: Path, chance: random.Random, stack: ExitStack) -> None:
        self.server = server
        self.chance = chance
        self.kills: Counter[str] = Counter()
        self.networks = stack.enter_context(closing(Networks(MACHINES))) if can_make_networks() else None
        web = {"hosts": HOSTS, "pages": PAGES, "latency": 0.02}
        url = server.create_database()
        if self.networks is None:
            self.web = stack.enter_context(closing(SyntheticWeb(**web)))  # type: ignore[arg-type]
        else:
            place = {"network": WEB_NETWORK, "inside": self.networks.web.inside, "control": folder / "web"}
            self.web = stack.enter_context(closing(SyntheticWeb(**web, **place)))  # type: ignore[arg-type]
            url = server.socket_url(url)
        self.yard: Yard = stack.enter_context(yard(url, folder))
        self.workers = [self._start(number) for number in range(MACHINES)]

    def _start(self, number: int) -> Any:
        inside = self.networks.machines[number].inside if self.networks else ()
        return self.yard.start(f"machine-{number}", inside=inside, **QUICK)

    def crawl(self) -> str:
        url = self.web.start
        payload = {"url": url, "scope": "any", "speed": "max", "delay": DELAY, "content": "none", "shards": SHARDS}
        sizes = {"fetchers": 2, "allow_private": ["127.0.0.0/8", f"{WEB_NETWORK}.0.0.0/8"]}
        new = NewJob("site", {**payload, **sizes}, request_url=url, max_retries=1_000)
        return jobs.enqueue(self.yard.database, new)[0].id

    def strike(self) -> None:
        """Kill a worker with everything below it, a process of a shard, or PostgreSQL."""
        victim = self.chance.choice(["worker", "runner", "runner", "child"] + (["server"] if LONG else []))
        if victim == "server":
            self.server.stop("immediate")
            self.server.start()
        elif victim == "worker":
            number = self.chance.randrange(MACHINES)
            self.workers[number].kill()
            self.workers[number] = self._start(number)
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


def looks_right(place: Yard, id: str, reachable: set[str]) -> int:
    """At any moment: the counts add up, and nothing failed or was skipped. Returns how many pages are stored."""
    counts = urls.counts(place.database, id)
    ended = counts.done + counts.unchanged + counts.failed + counts.skipped
    assert counts.discovered == counts.queued + counts.in_flight + ended
    assert counts.discovered <= len(reachable)
    assert (counts.failed, counts.skipped) == (0, 0)
    return counts.done


def gaps(log: list[tuple[float, str, str]]) -> Iterator[float]:
    """The times between two requests to one host."""
    by_host: dict[str, list[float]] = {}
    for at, host, _ in log:
        by_host.setdefault(host, []).append(at)
    for times in by_host.values():
        yield from (later - earlier for earlier, later in pairwise(times))


@pytest.mark.timeout(3600 if LONG else 300)
def test_a_crawl_over_three_machines_survives_kills(own_postgres: PostgresServer, tmp_path: Path, figure: Any) -> None:
    chance = random.Random(os.environ.get("SILKLINE_SEED", "shards"))
    with ExitStack() as stack:
        fleet = Fleet(own_postgres, tmp_path, chance, stack)
        place, web, reachable = fleet.yard, fleet.web, fleet.web.reachable()
        id = fleet.crawl()
        step = max(1, len(reachable) // (KILLS * 5 // 4 + 2))
        goal, looks, deadline = step, 0, time.monotonic() + (3000 if LONG else 200)
        web.slow_after(step)
        while (job := place.job(id)).status in LIVE and time.monotonic() < deadline:
            done, looks = looks_right(place, id, reachable), looks + 1
            if fleet.kills.total() < KILLS and done >= goal:
                fleet.strike()
                goal += step
                web.slow_after(step if fleet.kills.total() < KILLS else None)
            time.sleep(0.05)
        assert job.status is Status.COMPLETED, (job, fleet.kills, [str(each) for each in shards.of(place.database, id)])
        stored = Counter(result.final_url for result in results.every(place.database, id))
        assert stored == dict.fromkeys(reachable, 1)
        assert place.adds_up(id)
        attempts = sum(shard.attempt for shard in shards.of(place.database, id))
        log = web.log()
    assert fleet.kills.total() >= KILLS - (0 if LONG else 2), fleet.kills
    closest = min(gaps(log))
    # 0.054 s were seen once, at a load of 15. Not known: did the busy server note a request late, or did a shard that
    # another worker took over ask too early? Its clock of the host is lost with the process.
    assert closest > DELAY / 5, f"a host was asked twice within {closest:.3f} s"
    again = sum(path != "/robots.txt" for _, _, path in log) - len(reachable)
    where = "three network namespaces" if fleet.networks else NONE
    figure.append(f"{len(reachable)} pages, {attempts} attempts, kills {dict(fleet.kills)}, {again} fetched again")
    figure.append(f"{looks} looks, requests to a host at least {closest:.3f} s apart (delay {DELAY}), {where}")

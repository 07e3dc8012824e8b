"""Measures what shards cost a crawl: pages/s and CPU-ms a page, of the crawler and of PostgreSQL.

    make bench BENCH=shards ARGS="--pages 4000 --rounds 3"

One worker crawls the web of benchmarks/crawl.py from PostgreSQL, links only, with four fetchers in all: unsharded, and
in 1, 2 and 4 shards with four, two and one fetchers each. So only the shards differ: a page costs more CPU time in four
processes than in one, whether they belong to shards, to fetchers or to crawls side by side. A third of the links of a page lead to other hosts, and most of those to other
shards. CPU of the crawler is that of the worker with all its processes, CPU of the server that of all its processes.
Each case runs twice, with a quarter of the pages and with all. The cost of a page is the difference by the difference of
pages: so it does not have the start and the end, which every crawl pays once. They are a column of their own. The cases
run in turn, and the table shows the best and the median round of each. Nothing is asserted.

All processes of the crawler run on one core, those of the servers on another, because a page costs more CPU time while
two cores share their caches. `--spread` lets the system choose. `--fetchers 1` gives every crawl or shard one fetcher,
and shows the cost of more processes too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks import crawl
from silkline.model.job import ENDED, NewJob
from silkline.store import jobs, urls
from tests.support.postgres import PostgresServer
from tests.support.supervisors import eventually, yard

CASES: dict[str, int | None] = {"unsharded": None, "1 shard": 1, "2 shards": 2, "4 shards": 4}
# As in production, but for the disk: how often things are looked at is a part of the cost.
SETTINGS: dict[str, Any] = {
    "slots": 4,
    "heartbeat_interval": 10.0,
    "watchdog_interval": 60.0,
    "poll_interval": 1.0,
    "wish_interval": 0.5,
    "memory_interval": 1.0,
    "cleaner_interval": 600.0,
    "max_concurrent_http": 64,
}


@dataclass(frozen=True)
class Cost:
    """What the pages cost that a long crawl has and a short one has not, and the rest."""

    pages: int
    seconds: float
    client: float
    server: float
    once: float
    """CPU seconds of both for the start and the end."""

    @property
    def each(self) -> float:
        """CPU-ms a page, of the crawler and of the server."""
        return 1000 * (self.client + self.server) / self.pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fetchers", type=int, default=4, help="of all shards together")
    parser.add_argument("--spread", action="store_true", help="use all cores for everything")
    asked = parser.parse_args()
    server = PostgresServer(shared_buffers="256MB")
    rounds: dict[str, list[Cost]] = {name: [] for name in CASES}
    cores = sorted(os.sched_getaffinity(0))
    if not asked.spread:
        for process in (psutil.Process(server.pid), *psutil.Process(server.pid).children()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.cpu_affinity(cores[-1:])
    try:
        with crawl.nginx(str(cores[-1]), https=False) as web:
            if not asked.spread:
                os.sched_setaffinity(0, cores[:1])
            for _ in range(asked.rounds):
                for name, shards in CASES.items():
                    rounds[name].append(_cost(server, web["http"], asked.pages, shards, asked.fetchers))
                    print(f"{name}: {rounds[name][-1].each:.2f} ms", file=sys.stderr)
    finally:
        server.remove()
    print(_table(rounds))


def _table(rounds: dict[str, list[Cost]]) -> str:
    lines = [
        "| crawl | pages/s | CPU-ms a page: crawler | PostgreSQL | both | beside unsharded | medians | start and end, CPU-s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    best = {name: min(several, key=lambda cost: cost.each) for name, several in rounds.items()}
    middle = {name: statistics.median(cost.each for cost in several) for name, several in rounds.items()}
    for name, cost in best.items():
        each = f"{1000 * cost.client / cost.pages:.2f} | {1000 * cost.server / cost.pages:.2f} | {cost.each:.2f}"
        more = 100 * cost.each / best["unsharded"].each - 100
        usual = 100 * middle[name] / middle["unsharded"] - 100
        rate = cost.pages / cost.seconds
        lines.append(f"| {name} | {rate:.0f} | {each} | {more:+.0f} % | {usual:+.0f} % | {cost.once:.1f} |")
    return "\n".join(lines)


def _payload(url: str, pages: int, shards: int | None, fetchers: int) -> dict[str, Any]:
    payload = {"url": url, "scope": "any", "speed": "max", "ignore_robots": True, "limit": pages, "content": "none"}
    payload |= {"fetchers": max(1, fetchers // (shards or 1)), "parsers": 0, "allow_private": ["127.0.0.0/8"]}
    return payload | ({"shards": shards} if shards else {})


def _cost(server: PostgresServer, url: str, pages: int, shards: int | None, fetchers: int) -> Cost:
    short = _run(server, _payload(url, pages // 4, shards, fetchers))
    long = _run(server, _payload(url, pages, shards, fetchers))
    more = pages - pages // 4
    seconds, client, at_server = (after - before for after, before in zip(long, short, strict=True))
    once = sum(short[1:]) - (client + at_server) / more * (pages // 4)
    return Cost(more, seconds, client, at_server, once)


def _run(server: PostgresServer, payload: dict[str, Any]) -> tuple[float, float, float]:
    """One crawl on a new database, with a new worker: seconds, CPU of the crawler, CPU of the server."""
    url = server.create_database()
    try:
        with tempfile.TemporaryDirectory() as folder, yard(url, Path(folder)) as place:
            worker = place.ready(place.start(**SETTINGS))
            cpu = lambda: (time.perf_counter(), _tree_cpu(worker.process.pid), _server_cpu(server))  # noqa: E731
            began = cpu()
            job = jobs.enqueue(place.database, NewJob("site", payload, request_url=payload["url"]))[0]
            eventually("the crawl ends", lambda: place.job(job.id).status in ENDED, 3_600)
            ended = cpu()
            assert urls.counts(place.database, job.id).done == payload["limit"]
            worker.terminate()
            seconds, client, at_server = (after - before for after, before in zip(ended, began, strict=True))
            return seconds, client, at_server
    finally:
        server.drop_database(url)


def _tree_cpu(pid: int) -> float:
    """CPU time of a process and all below it, with those that have ended."""
    first, total = psutil.Process(pid), 0.0
    for process in (first, *first.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def _server_cpu(server: PostgresServer) -> float:
    """CPU time of the server: its first process, those that have ended, and those that live."""
    first = psutil.Process(server.pid)
    living = [child.cpu_times() for child in first.children()]
    own = first.cpu_times()
    return sum(own[:4]) + sum(each.user + each.system for each in living)


if __name__ == "__main__":
    main()

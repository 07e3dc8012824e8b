"""Measures what shards cost a crawl: pages/s and CPU-ms a page, of the crawler and of PostgreSQL.

    make bench BENCH=shards ARGS="--pages 4000 --rounds 3"

One worker crawls the web of benchmarks/crawl.py from PostgreSQL, links only, with one fetcher for each crawl or shard:
unsharded, and in 1, 2 and 4 shards. A third of the links of a page lead to other hosts, and most of those to other
shards. CPU of the crawler is that of the worker with all its processes, CPU of the server that of all its processes.
Both are counted from the moment when a quarter of the pages is stored to the end: so the cost of a page does not have
the start of the processes, which a longer crawl pays once too. The start is a column of its own. The cases run in turn,
and the table shows the best and the median round of each. Nothing is asserted.

All processes of the crawler run on one core, those of the servers on another. Otherwise shards would use both cores and
an unsharded crawl only one, and a page costs more CPU time where two cores share their caches. `--spread` lets the
system choose, as in production: that shows the pages/s of several shards.
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
    pages: int
    seconds: float
    client: float
    server: float
    start: float
    """CPU seconds of both before the first quarter was stored, less those for its pages."""

    @property
    def each(self) -> float:
        """CPU-ms a page, of the crawler and of the server."""
        return 1000 * (self.client + self.server) / self.pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spread", action="store_true", help="use all cores for everything")
    asked = parser.parse_args()
    server = PostgresServer(shared_buffers="256MB")
    rounds: dict[str, list[Cost]] = {name: [] for name in CASES}
    cores = sorted(os.sched_getaffinity(0))
    if not asked.spread:
        for process in (psutil.Process(server.pid), *psutil.Process(server.pid).children()):
            process.cpu_affinity(cores[-1:])
    try:
        with crawl.nginx(str(cores[-1]), https=False) as web:
            if not asked.spread:
                os.sched_setaffinity(0, cores[:1])
            for _ in range(asked.rounds):
                for name, shards in CASES.items():
                    rounds[name].append(_run(server, _payload(web["http"], asked.pages, shards)))
                    print(f"{name}: {rounds[name][-1].each:.2f} ms", file=sys.stderr)
    finally:
        server.remove()
    print(_table(rounds))


def _table(rounds: dict[str, list[Cost]]) -> str:
    lines = [
        "| crawl | pages/s | CPU-ms a page: crawler | PostgreSQL | both | beside unsharded | medians | start, CPU-s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    best = {name: min(several, key=lambda cost: cost.each) for name, several in rounds.items()}
    middle = {name: statistics.median(cost.each for cost in several) for name, several in rounds.items()}
    for name, cost in best.items():
        each = f"{1000 * cost.client / cost.pages:.2f} | {1000 * cost.server / cost.pages:.2f} | {cost.each:.2f}"
        more = 100 * cost.each / best["unsharded"].each - 100
        usual = 100 * middle[name] / middle["unsharded"] - 100
        rate = cost.pages / cost.seconds
        lines.append(f"| {name} | {rate:.0f} | {each} | {more:+.0f} % | {usual:+.0f} % | {cost.start:.1f} |")
    return "\n".join(lines)


def _payload(url: str, pages: int, shards: int | None) -> dict[str, Any]:
    payload = {"url": url, "scope": "any", "speed": "max", "ignore_robots": True, "limit": pages, "content": "none"}
    payload |= {"fetchers": 1, "parsers": 0, "allow_private": ["127.0.0.0/8"]}
    return payload | ({"shards": shards} if shards else {})


def _run(server: PostgresServer, payload: dict[str, Any]) -> Cost:
    """One crawl on a new database, with a new worker."""
    url = server.create_database()
    try:
        with tempfile.TemporaryDirectory() as folder, yard(url, Path(folder)) as place:
            worker = place.ready(place.start(**SETTINGS))
            cpu = lambda: (_tree_cpu(worker.process.pid), _server_cpu(server))  # noqa: E731
            began = cpu()
            job = jobs.enqueue(place.database, NewJob("site", payload, request_url=payload["url"]))[0]
            stored = lambda: urls.counts(place.database, job.id).done  # noqa: E731
            eventually("a quarter is stored", lambda: stored() >= payload["limit"] / 4, 3_600)
            first, from_, quarter = stored(), time.perf_counter(), cpu()
            eventually("the crawl ends", lambda: place.job(job.id).status in ENDED, 3_600)
            seconds, ended = time.perf_counter() - from_, cpu()
            pages = stored() - first
            worker.terminate()
            client, at_server = (after - before for after, before in zip(ended, quarter, strict=True))
            start = sum(quarter) - sum(began) - (client + at_server) / pages * first
            return Cost(pages, seconds, client, at_server, start)
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

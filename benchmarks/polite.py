"""What bookings of hosts cost, and what a host sees of two crawls and many `page` jobs. Prints Markdown tables.

    make bench BENCH=polite            or: .venv/bin/python -m benchmarks.polite --help

The first table books hosts in batches, as a crawl does, on SQLite and on PostgreSQL with fsync. The second one runs two
crawls and many `page` jobs against one host, on two workers with one PostgreSQL, and then with two databases, which is
the same without bookings. The gaps are those in the log of the web server. Its threads run before all others if this
process may arrange that (it must be root): otherwise the log of a busy machine shows when the server noticed a request,
and not when it arrived.
"""

import argparse
import contextlib
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import bookings, jobs
from silkline.store.bookings import Asked
from silkline.store.opening import open_database
from tests.support.postgres import PostgresServer
from tests.support.supervisors import Yard, yard

JOB = "018f0000-0000-7000-8000-000000000001"
HTML = "text/html; charset=utf-8"
BLOCK = 4.0


def cost(name: str, database: Database, server_cpu: Callable[[], float], hosts: int, batch: int, rounds: int) -> str:
    names = [f"host{number:06d}.example" for number in range(hosts)]
    addresses = {host: f"192.0.{number % 250}.{number // 250 % 250}" for number, host in enumerate(names)}
    before, client, server = time.perf_counter(), _own_cpu(), server_cpu()
    statements = 0
    for _ in range(rounds):
        for first in range(0, hosts, batch):
            some = names[first : first + batch]
            asked = [Asked(host, 7, 0.5, BLOCK) for host in some]
            bookings.book(database, JOB, asked, {addresses[host]: 0.5 for host in some})
            statements += 1
    seconds, made = time.perf_counter() - before, hosts * rounds
    client, server = _own_cpu() - client, server_cpu() - server
    each = [f"{1e6 * value / made:.1f} µs" for value in (client, server)]
    second = 1000 * (client + server) / made / BLOCK
    return (
        f"| {name} | {hosts:,} | {batch} | {made / seconds:,.0f} | {1000 * seconds / statements:.1f} ms "
        f"| {each[0]} | {each[1]} | {second:.4f} ms |"
    )


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _cpu_below(pid: int) -> float:
    """CPU time of a process and its children, those that are alive."""
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


class Site:
    """One host that keeps a log of its requests."""

    def __init__(self, pages: int) -> None:
        self.log: list[tuple[float, str]] = []
        self._links = "".join(f'<a href="/{number}">x</a>' for number in range(pages)).encode()
        self.server = SampleServer(respond=self._respond)

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        self.log.append((time.monotonic(), target))
        if target == "/robots.txt":
            return SampleAnswer(404, HTML, b"")
        return SampleAnswer(200, HTML, b"<title>A page</title><p>Words.</p>" + self._links)


def seen_by_a_host(server: PostgresServer, databases: int, crawls: int, pages: int, delay: float) -> str:
    """Two workers. With two databases each has one of its own, so nothing is booked together."""
    site = Site(30)
    with ExitStack() as stack:
        stack.enter_context(site.server)
        _run_first()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = [server.create_database() for _ in range(databases)]
        yards = [stack.enter_context(yard(url, folder / str(number))) for number, url in enumerate(urls)]
        ids: list[tuple[Yard, str]] = []
        for number in range(crawls):
            ids.append(_add(yards[number % databases], "site", site.server.url, delay, fetchers=1))
        for number in range(2):
            yards[number % databases].start(f"worker{number}", slots=10)
        while not site.log:
            time.sleep(0.05)
        for number in range(pages):
            ids.append(_add(yards[number % databases], "page", f"{site.server.url}page{number}", delay))
        for place, id in ids:
            while place.job(id).finished_at is None:
                time.sleep(0.2)
        states = {str(place.job(id).status) for place, id in ids}
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(site.log)]
    close = sum(gap < delay for gap in gaps)
    for gap, (_, first), (_, second) in zip(gaps, site.log, site.log[1:], strict=False):
        if gap < delay and databases == 1:
            print(f"{gap:.4f} s between {first} and {second}", file=sys.stderr)
    return (
        f"| {'yes' if databases == 1 else 'no'} | {crawls} + {pages} | {', '.join(states)} | {len(site.log)} "
        f"| {min(gaps):.4f} s | {median(gaps):.3f} s | {close} | {site.log[-1][0] - site.log[0][0]:.0f} s |"
    )


def _run_first() -> None:
    """Let the threads of the web server run before all other programs. Threads that they start inherit it."""
    for thread in map(int, os.listdir("/proc/self/task")):  # noqa: PTH208
        if thread != os.getpid():
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))


def _add(place: Yard, kind: str, url: str, delay: float, **more: Any) -> tuple[Yard, str]:
    given = {"url": url, "delay": delay, "allow_private": ["127.0.0.0/8"], **more}
    return place, jobs.enqueue(place.database, NewJob(kind, given, request_url=url))[0].id


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=200, help="`page` jobs; 0: only the first table")
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--booked-only", action="store_true", help="not with two databases")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, {psutil.cpu_count()} cores\n")
    server = PostgresServer(fsync=True)
    try:
        print("| database | hosts | batch | bookings/s | a batch | CPU, client | CPU, server | a host costs a second |")
        print("|---|---|---|---|---|---|---|---|")
        with tempfile.TemporaryDirectory() as folder:
            sqlite = open_database(f"sqlite:///{folder}/silkline.db")
            print(cost("SQLite", sqlite, lambda: 0.0, given.hosts, given.batch, given.rounds), flush=True)
            sqlite.close()
        postgres = open_database(server.create_database())
        used = lambda: _cpu_below(server.pid)  # noqa: E731
        print(cost("PostgreSQL", postgres, used, given.hosts, given.batch, given.rounds), flush=True)
        postgres.close()
        if given.pages:
            print(
                "\n| booked | jobs | status | requests | smallest gap | median gap | closer than the delay | in all |"
            )
            print("|---|---|---|---|---|---|---|---|")
            print(seen_by_a_host(server, 1, 2, given.pages, given.delay), flush=True)
            if not given.booked_only:
                print(seen_by_a_host(server, 2, 2, given.pages, given.delay), flush=True)
    finally:
        server.remove()


if __name__ == "__main__":
    main()

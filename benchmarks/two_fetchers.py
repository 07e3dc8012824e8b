"""How much faster two fetchers on two cores are than one on one core, if the web server ran on another machine.

    make bench BENCH=two_fetchers ARGS="--pages 20000 --rounds 3"

`silkline crawl` crawls the web of benchmarks/crawl.py, links only, with SQLite: first with one fetcher on the first core
and nginx on the second, then with two fetchers on both cores, which nginx uses too. Pages and CPU times are those from
the first checkpoint to the last one that was seen while the crawl ran, so the start is not in them.

With two fetchers, nginx and the crawl share two cores. Without nginx, its CPU time would be free on both, so

    seconds without the server = seconds - CPU seconds of nginx / 2

This assumes that no core is idle and that the crawl can use what becomes free. The bound assumes nothing: the leader is
fetcher 0 too, and the crawl cannot be faster than its busiest process on a core of its own. So

    pages/s at most = pages / CPU seconds of the busiest process

Nothing is asserted. The cases run in turn, and the table shows the fastest round of each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw
import psutil

from benchmarks import crawl
from silkline.process_usage import FETCHER, LEADER, OTHER, below, children_by_parent, usage_of

LOOK = 0.05
DONE = "SELECT coalesce(sum(done), 0) FROM crawl_states"
NGINX = "nginx"


@dataclass(frozen=True)
class Sample:
    """CPU seconds of each role so far, when the ledger had this many pages."""

    at: float
    pages: int
    cpu: dict[str, float]


@dataclass(frozen=True)
class Span:
    """What was used between two samples."""

    pages: int
    seconds: float
    cpu: dict[str, float]

    @property
    def rate(self) -> float:
        return self.pages / self.seconds

    @property
    def without_server(self) -> float:
        """Pages/s if nginx, which uses the cores of the crawl, ran elsewhere."""
        return self.pages / (self.seconds - self.cpu[NGINX] / 2)

    @property
    def most(self) -> float:
        return self.pages / max(self.cpu[LEADER], self.cpu[FETCHER])

    def each(self, role: str) -> float:
        return 1000 * self.cpu[role] / self.pages


def run(start: str, cores: str, fetchers: int, limit: int, server_cpu: Callable[[], float]) -> Span:
    """One crawl on these cores, with the real command."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--scope", "any", "--speed", "max", "--ignore-robots", "--allow-private", "127.0.0.0/8", "--quiet"]
        options += ["--limit", str(limit), "--content", "none", "--fetchers", str(fetchers), "--parsers", "0"]
        command = ["taskset", "-c", cores, sys.executable, "-m", "silkline", "crawl", start, *options]
        process = subprocess.Popen(command, env={**os.environ, "SILKLINE_DATA": folder}, stdout=subprocess.DEVNULL)
        samples: list[Sample] = []
        while process.poll() is None:
            pages = stored(Path(folder) / "silkline.db")
            if pages > (samples[-1].pages if samples else 0):
                samples += filter(None, [look(process.pid, pages, server_cpu)])
            time.sleep(LOOK)
        if process.returncode or len(samples) < 3:
            raise SystemExit(f"the crawl ended with {process.returncode} and {len(samples)} checkpoints: more --pages")
    first, last = samples[0], samples[-1]
    used = {role: last.cpu[role] - first.cpu[role] for role in first.cpu}
    return Span(last.pages - first.pages, last.at - first.at, used)


def look(pid: int, pages: int, server_cpu: Callable[[], float]) -> Sample | None:
    """None: the crawl is ending."""
    server = server_cpu()
    usages = usage_of(below(pid, children_by_parent()) - {pid}, pid, OTHER)
    try:
        fetchers = [psutil.Process(each.pid) for each in usages if each.role == FETCHER]
        # The leader starts the fetchers. Without them, it is the process that works.
        leader = fetchers[0].ppid() if fetchers else max(usages, key=lambda each: each.cpu_seconds).pid
    except (psutil.Error, ValueError):
        return None
    cpu = {LEADER: 0.0, FETCHER: 0.0, OTHER: 0.0, NGINX: server}
    for each in usages:
        cpu[LEADER if each.pid == leader else FETCHER if each.role == FETCHER else OTHER] += each.cpu_seconds
    return Sample(time.perf_counter(), pages, cpu)


def stored(database: Path) -> int:
    try:
        connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return int(next(iter(connection.execute(DONE)))[0])
        finally:
            connection.close()
    except apsw.Error:
        return 0


def server_of(process: psutil.Process) -> Callable[[], float]:
    """The CPU seconds of the nginx that a process started, and of its workers."""
    found = [each for each in process.children(recursive=True) if each.name() == NGINX]
    return lambda: float(sum(sum(each.cpu_times()[:2]) for each in found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=lambda text: text.split(","), default=["0", "1"], help="two cores")
    options = parser.parse_args()
    one, both = options.cores[0], ",".join(options.cores)
    best: dict[int, Span] = {}
    with crawl.nginx(options.cores[1], https=False) as web:
        server_cpu = server_of(psutil.Process())
        for _ in range(options.rounds):
            for fetchers, cores in ((1, one), (2, both)):
                found = run(web["http"], cores, fetchers, options.pages, server_cpu)
                best[fetchers] = max(best.get(fetchers, found), found, key=lambda span: span.rate)
    print(f"load average {os.getloadavg()[0]:.1f}\n")
    print("| | pages/s | without the server | at most | CPU-ms a page: leader | fetcher 1 | others | nginx |")
    print("|---|---|---|---|---|---|---|---|")
    alone, together = best[1], best[2]
    roles = (LEADER, FETCHER, OTHER, NGINX)
    for name, span, without in (
        ("one fetcher, one core", alone, alone.rate),
        ("two fetchers, two cores", together, together.without_server),
    ):
        each = " | ".join(f"{span.each(role):.3f}" for role in roles)
        print(f"| {name} | {span.rate:,.0f} | {without:,.0f} | {span.most:,.0f} | {each} |")
    ratios = (together.rate, together.without_server), (alone.rate, alone.rate)
    measured, without = (two / one for two, one in zip(*ratios, strict=True))
    print(f"| times | {measured:.2f} | {without:.2f} | {together.most / alone.most:.2f} | | | | |")


if __name__ == "__main__":
    main()

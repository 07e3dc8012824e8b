"""Jobs per second through the queue, compared with Procrastinate on the same PostgreSQL. Prints a Markdown table.

    make bench BENCH=queue            or: .venv/bin/python benchmarks/queue.py --help

PostgreSQL runs with fsync on and its defaults; SQLite runs with the options of Silkline. Each side uses one connection
and makes one call after the other, with the same number of waiting jobs. The sides run in turn in short slices, so that
other load on the machine affects all sides equally. The table shows the median slice of each side. Procrastinate is
installed into build/, never into our own environment.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# When this file is started directly, its folder is first on the path, and `import queue` would import this file.
sys.path[:] = [str(ROOT), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "benchmarks")]

import argparse
import platform
import statistics
import subprocess
import tempfile
import time
import venv
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from silkline.model.job import AttemptEnd, Backoff, End, NewJob, decide
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.postgres import PostgresServer

PEER = ROOT / "build" / "procrastinate"
ORDERS = {
    "enqueue": "enqueue, one by one",
    "enqueue-batches": "enqueue, in batches of {batch}",
    "work": "claim + finish, one by one",
    "work-batches": "claim + finish, in batches of {batch}",
}
Speeds = dict[tuple[str, str], float]


class Side(Protocol):
    def carry_out(self, order: str, count: int) -> float:
        """Carry out the order for `count` jobs, and return the seconds."""
        ...

    def close(self) -> None: ...


class Silkline:
    def __init__(self, url: str, batch: int) -> None:
        self._database = open_database(url)
        self._batch = batch

    def carry_out(self, order: str, count: int) -> float:
        at_once = self._batch if order.endswith("-batches") else 1
        action = self._work_off if order.startswith("work") else self._enqueue
        began = time.perf_counter()
        for _ in range(count // at_once):
            action(at_once)
        return time.perf_counter() - began

    def close(self) -> None:
        self._database.close()

    def _enqueue(self, count: int) -> None:
        new = [NewJob("site", {"url": "https://example.com/", "limit": 200}) for _ in range(count)]
        if count == 1:
            jobs.enqueue(self._database, new[0])
        else:
            jobs.enqueue_many(self._database, new)

    def _work_off(self, count: int) -> None:
        """Claim and finish jobs, as a supervisor does."""
        claimed = jobs.claim(self._database, "bench", "bench", ["site"], count)
        now = self._database.now()
        end = partial(decide, ended=AttemptEnd(End.COMPLETED), backoff=Backoff(), now=now, jitter=0.5)
        if count == 1:
            jobs.finish(self._database, claimed[0], end)
            return
        landed = jobs.finish_many(self._database, [(job, end(job)) for job in claimed])
        assert landed == len(claimed) == count


class Procrastinate:
    def __init__(self, url: str, batch: int) -> None:
        script = ROOT / "benchmarks" / "queue_procrastinate.py"
        # -P removes this folder from the path of that process too.
        command = [str(PEER / "bin" / "python"), "-P", str(script), url, str(batch)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self._answer()

    def carry_out(self, order: str, count: int) -> float:
        assert self._process.stdin is not None
        print(order, count, file=self._process.stdin, flush=True)
        return float(self._answer())

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit("Procrastinate's side ended early (see above)")
        return line


def install_procrastinate() -> None:
    ready = PEER / "installed"
    if not ready.exists():
        print("installing Procrastinate into build/ …", file=sys.stderr)
        venv.create(PEER, with_pip=True, clear=True)
        packages = ("procrastinate", "psycopg[binary]")
        subprocess.run([PEER / "bin" / "python", "-m", "pip", "install", "-qq", *packages], check=True)
        ready.touch()


@contextmanager
def opened(batch: int) -> Iterator[tuple[dict[str, Side], str]]:
    """The three sides, and Procrastinate's version."""
    server = PostgresServer(fsync=True)
    sides: dict[str, Side] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="silkline-bench-") as folder:
            peer = Procrastinate(server.create_database(), batch)
            sides["Procrastinate"] = peer
            sides["PostgreSQL"] = Silkline(server.create_database(), batch)
            sides["SQLite"] = Silkline(f"sqlite:///{folder}/silkline.db", batch)
            yield sides, peer.version
            for side in sides.values():
                side.close()
    finally:
        server.remove()


def measure(sides: dict[str, Side], slices: int, singles: int, batched: int) -> Speeds:
    """Fills the queues in slices, then processes them in slices. Returns the median speed of each side and order."""
    taken = defaultdict(list)
    for orders in (("enqueue", "enqueue-batches"), ("work", "work-batches")):
        for number in range(slices):
            print(f"\r{orders[0]}: slice {number + 1} of {slices} ", end="", file=sys.stderr)
            for order in orders:
                count = batched if order.endswith("-batches") else singles
                for name, side in sides.items():
                    # Procrastinate cannot fetch several jobs at once.
                    if (name, order) != ("Procrastinate", "work-batches"):
                        taken[name, order].append(count / side.carry_out(order, count))
    print(file=sys.stderr)
    return {key: statistics.median(speeds) for key, speeds in taken.items()}


def table(speeds: Speeds, version: str, batch: int) -> str:
    lines = [
        f"| jobs per second | SQLite | PostgreSQL | Procrastinate {version} | PostgreSQL : Procrastinate |",
        "|---|---:|---:|---:|---:|",
    ]
    for order, words in ORDERS.items():
        peer = speeds.get(("Procrastinate", order))
        single = speeds["Procrastinate", order.removesuffix("-batches")]
        cell = f"{peer:,.0f}" if peer else f"({single:,.0f} one by one)"
        sqlite, postgres = speeds["SQLite", order], speeds["PostgreSQL", order]
        ratio = postgres / (peer or single)
        lines.append(f"| {words.format(batch=batch)} | {sqlite:,.0f} | {postgres:,.0f} | {cell} | {ratio:.1f} : 1 |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Jobs per second through the queue, beside Procrastinate.")
    parser.add_argument("--slices", type=int, default=20, help="number of slices for each side")
    parser.add_argument("--singles", type=int, default=50, help="jobs one by one in each slice")
    parser.add_argument("--batched", type=int, default=1_000, help="jobs in batches in each slice")
    parser.add_argument("--batch", type=int, default=50)
    given = parser.parse_args()
    install_procrastinate()
    with opened(given.batch) as (sides, version):
        speeds = measure(sides, given.slices, given.singles, given.batched)
    print(table(speeds, version, given.batch))
    print(f"\nMedian of {given.slices} slices; Python {platform.python_version()}, {platform.machine()}, fsync on.")


if __name__ == "__main__":
    main()

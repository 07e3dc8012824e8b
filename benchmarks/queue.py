"""Jobs per second through the queue, beside Procrastinate on the same PostgreSQL. Prints a Markdown table.

    make bench BENCH=queue            or: .venv/bin/python benchmarks/queue.py --help

PostgreSQL runs with fsync on and its own defaults; SQLite as Silkline opens it. Each side works alone, on one
connection, one call after the other, with the same backlog waiting; the sides take turns in every round and the table
shows each one's median. Procrastinate is installed into build/, never among our own packages.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Started as a file, this folder would come first on the path, and `import queue` anywhere would find this file.
sys.path[:] = [str(ROOT), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "benchmarks")]

import argparse
import json
import platform
import random
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable
from functools import partial

from silkline.model.job import Backoff, End, Ended, NewJob, decide
from silkline.store import jobs
from silkline.store.database import Database, open_database
from tests.support.postgres import PostgresServer

Speeds = dict[str, float]
OUR_WORKER = {"worker_id": "bench", "host": "bench", "kinds": ["site"]}
PEER = ROOT / "build" / "procrastinate"


def speed_of(work: Callable[[], object], times: int, jobs_each: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(times):
        work()
    return times * jobs_each / (time.perf_counter() - began)


def new_job() -> NewJob:
    return NewJob("site", {"url": "https://example.com/", "limit": 200}, request_url="https://example.com/")


def work_off(database: Database, wanted: int) -> None:
    """Claim and finish, as a supervisor does it."""
    now = database.now()
    end = partial(decide, ended=Ended(End.COMPLETED), backoff=Backoff(), now=now, jitter=0.5)
    claimed = jobs.claim(database, wanted=wanted, **OUR_WORKER)  # type: ignore[arg-type]
    if wanted == 1:
        jobs.finish(database, claimed[0], end)
        return
    landed = jobs.finish_many(database, [(job, end(job)) for job in claimed])
    assert landed == len(claimed) == wanted


def measure_ours(url: str, singles: int, backlog: int, batch: int) -> Speeds:
    database = open_database(url)
    try:
        return {
            "enqueue, one by one": speed_of(lambda: jobs.enqueue(database, new_job()), singles),
            "enqueue, in batches": speed_of(
                lambda: jobs.enqueue_many(database, [new_job() for _ in range(batch)]), backlog // batch, batch
            ),
            "claim + finish, one by one": speed_of(lambda: work_off(database, 1), singles),
            "claim + finish, in batches": speed_of(lambda: work_off(database, batch), backlog // batch, batch),
        }
    finally:
        database.close()


def measure_procrastinate(url: str, *counts: int) -> tuple[str, Speeds]:
    script = ROOT / "benchmarks" / "queue_procrastinate.py"
    # -P keeps this folder off the path there too.
    command = [str(PEER / "bin" / "python"), "-P", str(script), url, *map(str, counts)]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return answer["version"], answer["speed"]


def install_procrastinate() -> None:
    ready = PEER / "installed"
    if not ready.exists():
        print("installing Procrastinate into build/ …", file=sys.stderr)
        venv.create(PEER, with_pip=True, clear=True)
        packages = ("procrastinate", "psycopg[binary]")
        subprocess.run([PEER / "bin" / "python", "-m", "pip", "install", "-qq", *packages], check=True)
        ready.touch()


def run(rounds: int, *counts: int) -> tuple[str, dict[str, list[Speeds]]]:
    install_procrastinate()
    version = ""
    results: dict[str, list[Speeds]] = {"SQLite": [], "PostgreSQL": [], "Procrastinate": []}
    server = PostgresServer(fsync=True)
    try:
        with tempfile.TemporaryDirectory(prefix="silkline-bench-") as folder:
            for number in range(rounds):
                for side in random.sample(sorted(results), len(results)):
                    print(f"round {number + 1} of {rounds}: {side}", file=sys.stderr)
                    if side == "SQLite":
                        results[side].append(measure_ours(f"sqlite:///{folder}/{number}.db", *counts))
                        continue
                    url = server.create_database()
                    if side == "PostgreSQL":
                        results[side].append(measure_ours(url, *counts))
                    else:
                        version, speeds = measure_procrastinate(url, *counts)
                        results[side].append(speeds)
                    server.drop_database(url)
    finally:
        server.remove()
    return version, results


def table(version: str, results: dict[str, list[Speeds]], batch: int) -> str:
    def median(side: str, what: str) -> float:
        return statistics.median(speeds[what] for speeds in results[side])

    lines = [
        f"| jobs per second | SQLite | PostgreSQL | Procrastinate {version} | PostgreSQL : Procrastinate |",
        "|---|---:|---:|---:|---:|",
    ]
    for what in results["SQLite"][0]:
        # Procrastinate has no way to fetch several jobs at once: our batches stand against its one by one.
        known = what in results["Procrastinate"][0]
        peer = median("Procrastinate", what if known else "claim + finish, one by one")
        ours = median("PostgreSQL", what)
        cell = f"{peer:,.0f}" if known else f"({peer:,.0f} one by one)"
        label = what.replace("batches", f"batches of {batch}")
        lines.append(f"| {label} | {median('SQLite', what):,.0f} | {ours:,.0f} | {cell} | {ours / peer:.1f} : 1 |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Jobs per second through the queue, beside Procrastinate.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--singles", type=int, default=1_000, help="jobs one by one, in each round")
    parser.add_argument("--backlog", type=int, default=10_000, help="jobs in batches, in each round")
    parser.add_argument("--batch", type=int, default=50)
    given = parser.parse_args()
    version, results = run(given.rounds, given.singles, given.backlog, given.batch)
    print(table(version, results, given.batch))
    print(f"\nMedian of {given.rounds} rounds; Python {platform.python_version()}, {platform.machine()}, fsync on.")


if __name__ == "__main__":
    main()

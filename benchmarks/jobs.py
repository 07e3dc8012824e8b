"""Measures all steps of a job: enqueue, claim, its own process, finish. Prints a Markdown table.

    make bench BENCH=jobs
    python -m benchmarks.jobs --against DIR --rounds 3

Uses real supervisors on SQLite and on PostgreSQL with fsync on, and compares the fork server with a new interpreter for
each job. "Claim to first line" ends when the supervisor has read the first line that the code of the job wrote. With
`--against` another checkout is measured in turn with this one, each with its own copy of this benchmark.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [str(ROOT), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "benchmarks")]

from silkline.model.job import Status
from silkline.store import logs
from tests.support.postgres import PostgresServer
from tests.support.supervisors import Yard, eventually, yard

FIRST_LINE = "diagnostic job: nothing"


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    server = PostgresServer(fsync=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield {"SQLite": f"sqlite:///{folder}/silkline.db", "PostgreSQL": server.create_database()}
    finally:
        server.remove()


def measure(place: Yard, *, jobs: int, single: int, slots: int, fork_server: bool) -> list[str]:
    supervisor = place.ready(
        place.start(f"fork-{fork_server}", slots=slots, fork_server=fork_server, poll_interval=1.0, wish_interval=0.5)
    )
    place.wait_for_end(place.add("nothing", many=4))
    begun = time.monotonic()
    place.wait_for_end(place.add("nothing", many=jobs))
    rate = jobs / (time.monotonic() - begun)
    waits, starts = [], []
    for _ in range(single):
        (id,) = place.add("nothing")
        job = place.wait_for(id, Status.COMPLETED)
        lines = eventually("its first line is stored", lambda id=id: first_line(place, id))
        assert job.started_at is not None
        waits.append((job.started_at - job.created_at).total_seconds() * 1000)
        starts.append((lines - job.started_at).total_seconds() * 1000)
    supervisor.terminate()
    return [f"{rate:.0f}", spread(waits), spread(starts)]


def first_line(place: Yard, id: str):
    return next((line.at for line in logs.page(place.database, id) if line.message == FIRST_LINE), None)


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} / {ordered[int(len(ordered) * 0.99)]:.1f}"


def measure_in_turn(checkouts: list[Path], rounds: int, sizes: list[str]) -> None:
    """Print the rows of all checkouts, each with the name of its folder."""
    for number in range(rounds):
        for checkout in checkouts:
            said = subprocess.run(
                [sys.executable, str(checkout / "benchmarks" / "jobs.py"), *sizes],
                check=True,
                capture_output=True,
                text=True,
                cwd=checkout,
                env={**os.environ, "PYTHONPATH": str(checkout / "src")},
            ).stdout.splitlines()
            start = 0 if number == 0 and checkout == checkouts[0] else 2
            for line in said[start:]:
                print(f"| {checkout.name} {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--single", type=int, default=50)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--against", type=Path, action="append", default=[], help="another checkout of Silkline")
    parser.add_argument("--rounds", type=int, default=1, help="with --against")
    options = parser.parse_args()
    if options.against:
        sizes = [f"--jobs={options.jobs}", f"--single={options.single}", f"--slots={options.slots}"]
        measure_in_turn([ROOT, *(each.resolve() for each in options.against)], options.rounds, sizes)
        return
    print("| database | runner | no-op jobs/s | enqueue to claim, ms p50 / p99 | claim to first line, ms p50 / p99 |")
    print("|---|---|---|---|---|")
    with databases() as urls, tempfile.TemporaryDirectory() as folder:
        for name, url in urls.items():
            with yard(url, Path(folder) / name) as place:
                for fork_server in (True, False):
                    cells = measure(
                        place, jobs=options.jobs, single=options.single, slots=options.slots, fork_server=fork_server
                    )
                    print(
                        "|",
                        " | ".join([name, "fork server" if fork_server else "fresh interpreter", *cells]),
                        "|",
                        flush=True,
                    )


if __name__ == "__main__":
    main()

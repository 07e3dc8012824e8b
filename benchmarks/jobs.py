"""Measures all steps of a job: enqueue, claim, its own process, finish. Prints a Markdown table.

    make bench BENCH=jobs

Uses real supervisors on SQLite and on PostgreSQL with fsync on, and compares the fork server with a new interpreter for
each job. "Claim to first line" ends when the supervisor has read the first line that the code of the job wrote.
"""

import argparse
import statistics
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--single", type=int, default=50)
    parser.add_argument("--slots", type=int, default=4)
    options = parser.parse_args()
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

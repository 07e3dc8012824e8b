"""Measures how long a claim takes while the queue grows to a million jobs, and after many jobs came and went.

    make bench BENCH=claims ARGS="--most 1000000"

PostgreSQL runs with fsync on and its defaults. Fifty claimers, each with a connection of its own, in five processes,
claim one job at a time and finish it. On few cores they mostly wait for each other, so the table also shows one claimer
alone, whose time is the cost of a claim. "Churn" claims and finishes jobs in batches. Dead rows are those that the
server has not yet removed; the size of the index of queued jobs shows whether it grows by jobs that are long gone.
Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from functools import partial

import psycopg

from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, End, decide
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.postgres import PostgresServer

KINDS = ("page", "site")
LEVELS = (1_000, 10_000, 100_000, 1_000_000)
PROCESSES = 5
# Ids rise with time, as those of real jobs.
FILL = """
INSERT INTO crawl_jobs (id, kind, status, desired, payload, priority, tenant, run_at, created_at, updated_at)
SELECT (lpad(to_hex(1700000000000 + n), 12, '0') || '70008' || substr(md5(n::text), 1, 15))::uuid,
       CASE n % 2 WHEN 0 THEN 'page' ELSE 'site' END, 'queued', 'run', '{"url": "https://example.com/"}',
       n % 10 / 9, 't' || n % %(tenants)s, now() - interval '1 day' + n * interval '1 ms', now(), now()
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
"""
BLOAT = """
SELECT n_live_tup AS live, n_dead_tup AS dead, autovacuum_count AS vacuums, pg_relation_size('crawl_jobs') AS size,
       pg_relation_size('crawl_jobs_claim') AS index_size
FROM pg_stat_user_tables WHERE relname = 'crawl_jobs'
"""


def work(database: Database, name: str, rounds: int, batch: int, taken: list[float]) -> None:
    """Claim and finish jobs. Adds the seconds of each claim."""
    for _ in range(rounds):
        began = time.perf_counter()
        claimed = jobs.claim(database, name, "bench", KINDS, batch)
        taken.append(time.perf_counter() - began)
        end = partial(decide, ended=AttemptEnd(End.COMPLETED), backoff=Backoff(), now=database.now(), jitter=0.5)
        jobs.finish_many(database, [(job, end(job)) for job in claimed])


def claimer(url: str, number: str, threads: str, rounds: str, batch: str) -> None:
    """One process with several claimers. It waits for a line, so that all start together, and prints its times."""
    database = open_database(url, upgrade=False)
    taken: list[float] = []
    several = [
        threading.Thread(target=work, args=(database, f"w{number}-{each}", int(rounds), int(batch), taken))
        for each in range(int(threads))
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    for each in several:
        each.start()
    for each in several:
        each.join()
    print(json.dumps(taken))


def together(url: str, claimers: int, rounds: int, batch: int = 1) -> tuple[list[float], float]:
    """The seconds of each claim of all claimers, and how long they worked."""
    processes = min(PROCESSES, claimers)
    command = [sys.executable, "-m", "benchmarks.claims", "--claimer", url]
    several = [
        subprocess.Popen(
            [*command, str(number), str(claimers // processes), str(rounds), str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for each in several:
        assert each.stdout is not None
        each.stdout.readline()
    began = time.perf_counter()
    for each in several:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    taken = [seconds for each in several for seconds in json.loads(each.communicate()[0])]
    return taken, time.perf_counter() - began


def measure(connection: psycopg.Connection, url: str, label: str, options: argparse.Namespace) -> None:
    alone, _ = together(url, 1, options.alone)
    all_of_them, seconds = together(url, options.claimers, options.rounds)
    live, dead, vacuums, size, index_size = bloat(connection)
    cells = [label, *map(milliseconds, (alone, all_of_them)), f"{len(all_of_them) / seconds:,.0f}"]
    cells += [f"{live:,}", f"{dead:,}", str(vacuums), f"{size / 1e6:,.0f}", f"{index_size / 1e6:,.1f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def milliseconds(taken: list[float]) -> str:
    """The median and the 99th percentile."""
    cuts = statistics.quantiles(taken, n=100)
    return f"{1000 * cuts[49]:.1f} | {1000 * cuts[98]:.1f}"


def bloat(connection: psycopg.Connection) -> tuple[int, ...]:
    connection.execute("SELECT pg_stat_clear_snapshot()")
    row = connection.execute(BLOAT).fetchone()
    assert row is not None
    return tuple(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1_000_000, help="queued jobs at the end")
    parser.add_argument("--claimers", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20, help="claims of each claimer at each level")
    parser.add_argument("--alone", type=int, default=200, help="claims of one claimer alone at each level")
    parser.add_argument("--tenants", type=int, default=10)
    parser.add_argument("--churn", type=int, default=200_000, help="jobs that are claimed and finished at the end")
    options = parser.parse_args()
    server = PostgresServer(fsync=True)
    try:
        url = server.create_database()
        open_database(url).close()
        with psycopg.connect(url, autocommit=True) as connection:
            run(connection, url, options)
    finally:
        server.remove()


def run(connection: psycopg.Connection, url: str, options: argparse.Namespace) -> None:
    print(
        "| queued jobs | one claimer: p50 ms | p99 | all: p50 ms | p99 | claims/s | rows | dead | vacuums | MB | index MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    spare, last = options.claimers * options.rounds + options.alone, 0
    for level in (level for level in LEVELS if level <= options.most):
        queued = next(iter(connection.execute("SELECT count(*) FROM crawl_jobs WHERE status = 'queued'")))[0]
        first, last = last + 1, last + level + spare - queued
        fill = FILL.replace("%(tenants)s", str(options.tenants)).replace("n % ", "n %% ")
        connection.execute(fill.encode(), {"first": first, "last": last})
        measure(connection, url, f"{level:,}", options)
    for part in range(1, 3):
        batch = 50
        together(url, options.claimers, options.churn // 2 // options.claimers // batch, batch)
        measure(connection, url, f"after {part * options.churn // 2:,} came and went", options)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--claimer":
        claimer(*sys.argv[2:])
    else:
        main()

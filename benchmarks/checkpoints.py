"""What a checkpoint costs: CPU of the client and of the database server, bytes on disk and in the write-ahead log.

    make bench BENCH=checkpoints ARGS="--against ../older"

Each checkpoint has 50 pages with 38 new URLs and 60 links each, without content. At the end, the URLs that were not
fetched are left over. The tables and a first small job are made before, and do not count. PostgreSQL runs with fsync on
and its defaults. `--against DIR` measures another checkout of
Silkline in turn with this one. The table shows the best round of each. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import psutil
import psycopg

ROOT = Path(__file__).resolve().parents[1]
PAGES, NEW_URLS, LINKS = 50, 38, 60
LEDGER = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND relname IN ('crawl_urls', 'crawl_ledger')
"""


def child(url: str, checkpoints: int) -> None:
    """Write checkpoints with the Silkline on the path. Prints its CPU seconds: for them, and for the end."""
    from silkline.model.job import NewJob
    from silkline.store import jobs, urls
    from silkline.store.opening import open_database

    database = open_database(url)
    job = jobs.claim_one(database, "bench", "here", jobs.enqueue(database, NewJob("site", {}))[0].id)
    several = list(made(checkpoints))
    began = time.process_time()
    for each in several:
        urls.record(database, job, each)
    recorded = time.process_time()
    counts = urls.skip_queued(database, job, "over_limit")
    ended = time.process_time()
    assert counts.queued == 0
    print(json.dumps({"client": recorded - began, "end": ended - recorded, "urls": counts.discovered}))
    database.close()


def made(checkpoints: int) -> Iterator[Any]:
    from silkline.model import ledger
    from silkline.model.ledger import Checkpoint, NewResult, NewUrl, PageLinks, Settled

    by_columns = getattr(ledger, "NewUrls", list)  # as the recorder keeps them; older checkouts have rows
    chance, last = random.Random(1), 0

    def found(number: int) -> list[NewUrl]:
        nonlocal last
        rows = []
        for _ in range(number):
            last += 1
            host = f"www.host-{chance.randrange(2000)}.example"
            url = f"https://{host}/section-{chance.randrange(40)}/page-{last}.html"
            rows.append(
                NewUrl(last, chance.getrandbits(63), url, host, 3, "queued", None, None, last // 40 + 1, "link")
            )
        return rows

    yield Checkpoint(found=by_columns(found(PAGES)))
    for number in range(checkpoints):
        ids = range(number * PAGES + 1, (number + 1) * PAGES + 1)
        title = f"The title of a page of checkpoint {number}"
        results = [
            NewResult(id, address, id, address, id, json.dumps({"title": title}), True, METADATA)
            for id in ids
            for address in [f"https://www.host-1.example/section-1/page-{id}.html"]
        ]
        settled = [Settled(id, "done", None, None, 1, 200) for id in ids]
        links = [PageLinks(id, chance.randbytes(8 * LINKS)) for id in ids]
        yield Checkpoint(by_columns(found(PAGES * NEW_URLS)), settled, results, links, 800_000, 20, 1.0)


METADATA = json.dumps(
    {
        "http_status": 200,
        "content_type": "text/html",
        "bytes": 16412,
        "depth": 3,
        "seconds": 0.1234,
        "first_byte": 0.0934,
    }
)


def run_child(source: Path, url: str, checkpoints: int) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": f"{source / 'src'}"}
    command = [sys.executable, "-P", __file__, "--child", url, str(checkpoints)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def on_sqlite(source: Path, checkpoints: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "silkline.db"

        def sizes() -> dict[str, float]:
            connection = apsw.Connection(str(file))
            query = "SELECT sum(pgsize) FROM dbstat WHERE name IN ('crawl_urls', 'crawl_ledger')"
            ledger = next(iter(connection.execute(query)))[0]
            connection.close()
            return {"ledger": ledger, "disk": file.stat().st_size}

        run_child(source, f"sqlite:///{file}", 0)
        before = sizes()
        return run_child(source, f"sqlite:///{file}", checkpoints) | more(sizes(), before)


def more(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: value - before[name] for name, value in after.items()}


@contextmanager
def postgres() -> Iterator[Callable[[Path, int], dict[str, float]]]:
    sys.path.insert(0, str(ROOT))
    from tests.support.postgres import PostgresServer

    server = PostgresServer(fsync=True)

    def measure(source: Path, checkpoints: int) -> dict[str, float]:
        url = server.create_database()
        run_child(source, url, 0)
        with psycopg.connect(url, autocommit=True) as connection:

            def used() -> dict[str, float]:
                connection.execute("CHECKPOINT")
                return {
                    "server": server_cpu(server.pid),
                    "wal": wal_of(connection),
                    "ledger": float(one(connection, LEDGER)),
                    "disk": float(one(connection, "SELECT pg_database_size(current_database())")),
                }

            before = used()
            found = run_child(source, url, checkpoints) | more(used(), before)
        server.drop_database(url)
        return found

    try:
        yield measure
    finally:
        server.remove()


def one(connection: psycopg.Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def wal_of(connection: psycopg.Connection) -> float:
    return float(one(connection, "SELECT pg_current_wal_insert_lsn() - '0/0'"))


def server_cpu(pid: int) -> float:
    """CPU seconds of the server. A process that has ended is counted by its parent."""
    total = 0.0
    postmaster = psutil.Process(pid)
    for process in (postmaster, *postmaster.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
        if process.pid == pid:
            total += times.children_user + times.children_system
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout of Silkline, measured in turn with this one")
    options = parser.parse_args()
    sources = {"": ROOT} | ({" (against)": options.against.resolve()} if options.against else {})
    rounds: dict[str, list[dict[str, float]]] = {}
    with postgres() as on_postgres:
        for _ in range(options.rounds):
            for name, source in sources.items():
                rounds.setdefault(f"SQLite{name}", []).append(on_sqlite(source, options.checkpoints))
                rounds.setdefault(f"PostgreSQL{name}", []).append(on_postgres(source, options.checkpoints))
    print(f"{options.checkpoints} checkpoints of {PAGES} pages with {NEW_URLS} new URLs each; CPU-ms a page\n")
    print("| | client | server | the end | ledger, bytes a URL | all tables, bytes a page | log, bytes a page |")
    print("|---|---|---|---|---|---|---|")
    pages = options.checkpoints * PAGES
    for name, several in rounds.items():
        best = {key: min(each[key] for each in several) for key in several[0]}
        cells = [f"{1000 * best['client'] / pages:.3f}"]
        cells.append(f"{1000 * best['server'] / pages:.3f}" if "server" in best else "")
        cells += [f"{1000 * best['end'] / pages:.3f}", f"{best['ledger'] / best['urls']:.0f}"]
        cells += [f"{best['disk'] / pages:,.0f}", f"{best['wal'] / pages:,.0f}" if "wal" in best else ""]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        child(sys.argv[2], int(sys.argv[3]))
    else:
        main()

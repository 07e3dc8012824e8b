"""Compares ways to append new URLs to the ledger in PostgreSQL: CPU of client and server, and the write-ahead log.

    make bench BENCH=copy_rows

Each transaction appends the URLs of 50 pages, 38 each. "Arrays" is one INSERT from arrays, as text; the copies are COPY
as text, COPY in binary with psycopg's rows, and COPY in binary with rows that we pack ourselves. The ways run in turn,
and the table shows the best round of each. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import itertools
import random
import struct
import time
import uuid
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import dict_row

from benchmarks.checkpoints import server_cpu, wal_of
from silkline.model.ledger import NewUrl, NewUrls
from silkline.store.opening import open_database
from silkline.store.postgres import PostgresTransaction, _array
from silkline.store.statements import statement
from tests.support.postgres import PostgresServer

PAGES, NEW_URLS = 50, 38
COLUMNS = "job_id, id, url_key, url, host, depth, state, reason, detail, found_on, found_via, chain"
TYPES = ["uuid", "int8", "int8", "text", "text", "int4", "text", "text", "text", "int8", "text", "text"]
INSERT = """
INSERT INTO crawl_ledger (job_id, id, url_key, url, host, depth, state, reason, detail, found_on, found_via, chain)
SELECT %(ledger)s::uuid, * FROM unnest(%(id)s::bigint[], %(url_key)s::bigint[], %(url)s::text[], %(host)s::text[],
    %(depth)s::int[], %(state)s::text[], %(reason)s::text[], %(detail)s::text[], %(found_on)s::bigint[],
    %(found_via)s::text[], %(chain)s::text[])
"""
Way = Callable[[psycopg.Connection[Any], str, NewUrls], None]


def arrays(connection: psycopg.Connection[Any], job: str, found: NewUrls) -> None:
    columns = dict(zip(NewUrl._fields, map(_array, found.columns), strict=True))
    connection.execute(INSERT.encode(), {**columns, "ledger": job})


def text(connection: psycopg.Connection[Any], job: str, found: NewUrls) -> None:
    columns = [[str(value) if value is not None else "\\N" for value in column] for column in found.columns]
    rows = "\n".join(map("\t".join, zip(itertools.repeat(job), *columns, strict=False)))
    with connection.cursor().copy(f"COPY crawl_ledger ({COLUMNS}) FROM STDIN".encode()) as copy:
        copy.write(rows)


def binary(connection: psycopg.Connection[Any], job: str, found: NewUrls) -> None:
    with connection.cursor().copy(f"COPY crawl_ledger ({COLUMNS}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.set_types(TYPES)
        id = uuid.UUID(job)
        for row in zip(itertools.repeat(id), *found.columns, strict=False):
            copy.write_row(row)


def packed(connection: psycopg.Connection[Any], job: str, found: NewUrls) -> None:
    head, null = struct.pack(">hi", 12, 16) + uuid.UUID(job).bytes, b"\xff\xff\xff\xff"
    ids, two = struct.Struct(">iqiq"), struct.Struct(">ii")
    parts = [b"PGCOPY\n\xff\r\n\x00" + bytes(8)]
    for id, key, url, host, depth, state, reason, detail, on, via, chain in zip(*found.columns, strict=True):
        parts += [head, ids.pack(8, id, 8, key), _text(url), _text(host), two.pack(4, depth), _text(state)]
        parts += [_text(reason) if reason else null, _text(detail) if detail else null]
        parts += [struct.pack(">iq", 8, on) if on else null, _text(via), _text(chain) if chain else null]
    parts.append(b"\xff\xff")
    with connection.cursor().copy(f"COPY crawl_ledger ({COLUMNS}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.write(b"".join(parts))


def _text(value: str) -> bytes:
    encoded = value.encode()
    return len(encoded).to_bytes(4, "big") + encoded


def as_now(connection: psycopg.Connection[Any], job: str, found: NewUrls) -> None:
    """What Silkline does."""
    columns = dict(zip(NewUrl._fields, found.columns, strict=True))
    before, connection.row_factory = connection.row_factory, dict_row
    PostgresTransaction(connection).columns("urls.append", columns, ledger=job)
    connection.row_factory = before


WAYS: dict[str, Way] = {
    "arrays": arrays,
    "COPY, text": text,
    "COPY, binary, psycopg": binary,
    "COPY, binary, packed": packed,
    "Silkline": as_now,
}


def made(number: int, chance: random.Random) -> NewUrls:
    first = number * PAGES * NEW_URLS + 1
    rows = []
    for id in range(first, first + PAGES * NEW_URLS):
        host = f"www.host-{chance.randrange(2000)}.example"
        url = f"https://{host}/section-{chance.randrange(40)}/page-{id}.html"
        rows.append(NewUrl(id, chance.getrandbits(63), url, host, 3, "queued", None, None, id // 40 + 1, "link"))
    return NewUrls(rows)


def measure(server: PostgresServer, url: str, way: Way, several: list[NewUrls]) -> tuple[float, float, float]:
    """CPU-ms of client and server, and bytes of the log, for a page."""
    job = str(uuid.uuid4())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        connection.execute("SET plan_cache_mode = force_generic_plan")
        at_server, wal, began = server_cpu(server.pid), wal_of(connection), time.process_time()
        for found in several:
            with connection.transaction():
                way(connection, job, found)
        client = time.process_time() - began
        used, written = server_cpu(server.pid) - at_server, wal_of(connection) - wal
        connection.execute("TRUNCATE crawl_ledger")
    pages = len(several) * PAGES
    return 1000 * client / pages, 1000 * used / pages, written / pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    assert statement("urls.append", "postgres")
    chance = random.Random(1)
    several = [made(number, chance) for number in range(options.transactions)]
    server = PostgresServer(fsync=True)
    rounds: dict[str, list[tuple[float, float, float]]] = {}
    try:
        url = server.create_database()
        open_database(url).close()
        for _ in range(options.rounds):
            for name, way in WAYS.items():
                rounds.setdefault(name, []).append(measure(server, url, way, several))
    finally:
        server.remove()
    print(f"| {NEW_URLS} new URLs a page | client, CPU-ms a page | server | together | log, bytes a page |")
    print("|---|---|---|---|---|")
    for name, found in rounds.items():
        client, used, wal = (min(each[place] for each in found) for place in range(3))
        print(f"| {name} | {client:.3f} | {used:.3f} | {client + used:.3f} | {wal:,.0f} |")


if __name__ == "__main__":
    main()

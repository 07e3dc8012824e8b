"""Measures the response times of the API with 100,000 jobs in the database, and the lag of 200 listeners to one job.

    python -m benchmarks.api [JOBS] [LISTENERS]

Prints a table for both databases. Asserts nothing, because times depend on the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from silkline.model.job import NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.postgres import PostgresServer
from tests.support.served import Client, Served

ASKED = 400
FOLLOWED = 10.0  # seconds


def fill(url: str, many: int) -> None:
    """Store many jobs, as in a busy service. They are paused, so that no worker runs them."""
    with closing(open_database(url)) as database:
        for start in range(0, many, 5_000):
            batch = [
                NewJob("page", {"url": f"https://example.com/{number}"}, f"https://example.com/{number}", paused=True)
                for number in range(start, min(start + 5_000, many))
            ]
            jobs.enqueue_many(database, batch)


def lists(client: Client, path: str) -> dict[str, float]:
    """Milliseconds per request. The requests are sent one after the other, each on its own connection."""
    took = []
    for _ in range(ASKED):
        began = time.perf_counter()
        answer = client.get(path)
        took.append(1000 * (time.perf_counter() - began))
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer}")
    took.sort()
    return {"p50": statistics.median(took), "p99": took[int(0.99 * len(took))], "max": took[-1]}


async def listen(client: Client, path: str, until: float, lags: list[float]) -> None:
    """Collect the age of the counters when this listener receives them."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {client.host}:{client.port}\r\n\r\n".encode())
    name = ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            while line := await reader.readline():
                text = line.decode().strip()
                if text.startswith("event: "):
                    name = text.removeprefix("event: ")
                elif text.startswith("data: ") and name == "progress":
                    counted = datetime.fromisoformat(json.loads(text.removeprefix("data: "))["updated_at"])
                    lags.append((datetime.now(UTC) - counted).total_seconds())
    writer.close()


async def follow(client: Client, path: str, listeners: int) -> list[float]:
    lags: list[float] = []
    until = asyncio.get_running_loop().time() + FOLLOWED
    await asyncio.gather(*(listen(client, path, until, lags) for _ in range(listeners)))
    return lags


def measure(url: str, folder: Path, many: int, listeners: int) -> None:
    fill(url, many)
    name = url.partition(":")[0]
    with closing(Served(url, folder, slots=1)) as server:
        client = server.ready()
        for path in ("/v1/jobs", "/v1/jobs?status=paused&limit=50", "/v1/jobs?q=example.com/99", "/"):
            figures = lists(client, path)
            print(f"{name:11} GET {path:34} " + "  ".join(f"{key} {value:6.1f} ms" for key, value in figures.items()))
        id = client.job(do="work", steps=1_000_000, seconds=0.02)
        client.wait_for(id, "running")
        lags = sorted(asyncio.run(follow(client, f"/v1/jobs/{id}/events", listeners)))
        if lags:
            print(
                f"{name:11} {listeners} listeners, {len(lags)} progress events: lag p50 {statistics.median(lags):.3f} s"
                f"  p99 {lags[int(0.99 * len(lags))]:.3f} s  max {lags[-1]:.3f} s"
            )


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    listeners = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as folder:
        measure(f"sqlite:///{folder}/silkline.db", Path(folder) / "sqlite", many, listeners)
        postgres = PostgresServer()
        try:
            measure(postgres.create_database(), Path(folder) / "postgres", many, listeners)
        finally:
            postgres.remove()


if __name__ == "__main__":
    main()

"""A crawl through hosts that serve bombs: every good page is stored, every bomb has its reason, no attempt is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path

import psutil
import pytest

from silkline.model.database import Database
from silkline.model.ledger import Url
from silkline.store import jobs, results, urls
from silkline.store.opening import open_database
from tests.acceptance.conftest import Silkline
from tests.chaos.poisoned_web import NAMES, PAGES, SITEMAPS, PoisonedWeb
from tests.conftest import DATABASES
from tests.crawl.harness import ENVIRONMENT
from tests.support.effort import LONG

HOSTS, EACH = (30, 100) if LONG else (8, 25)
LAYOUTS = {"1x0": (1, 0), "2x0": (2, 0), "1x1": (1, 1)}
# Each layout and each database; the long form has each layout on each database.
PLACES = list(product(DATABASES, LAYOUTS)) if LONG else [("sqlite", "1x0"), ("postgres", "2x0"), ("sqlite", "1x1")]
MEMORY = 1 << 30
OPTIONS = ("--scope", "host", "--speed", "max", "--allow-private", "127.0.0.0/8", "--exclude", "/far/", "--json")


@pytest.fixture(scope="module")
def web() -> Iterator[PoisonedWeb]:
    command = [sys.executable, "-m", "tests.chaos.poisoned_web", str(HOSTS), str(EACH)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        web = PoisonedWeb(HOSTS, EACH)
        web.port = int(server.stdout.readline())
        yield web
        server.stdin.close()


def watched(process: subprocess.Popen[bytes]) -> tuple[bytes, int]:
    """What the command printed, and the most memory (proportional, in bytes) that its tree was seen to use."""
    most = 0
    while True:
        try:
            out, _ = process.communicate(timeout=0.25)
        except subprocess.TimeoutExpired:
            with suppress(psutil.Error):
                tree = psutil.Process(process.pid).children(recursive=True)
                most = max(most, sum(each.memory_full_info().pss for each in tree))
            continue
        return out, most


def ledger(database: Database, job: str) -> dict[str, Url]:
    rows: dict[str, Url] = {}
    after = 0
    while page := urls.page(database, job, after=after, wanted=5000):
        rows |= {row.url: row for row in page}
        after = page[-1].id
    return rows


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("database_url", "layout"), PLACES, indirect=["database_url"])
def test_no_bomb_costs_a_good_page(
    layout: str, web: PoisonedWeb, database_url: str, tmp_path: Path, figure: list[str]
) -> None:
    silkline = Silkline(tmp_path, tmp_path / "byte-code", database_url)
    fetchers, parsers = LAYOUTS[layout]
    sizes = ("--fetchers", str(fetchers), "--parsers", str(parsers))
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\n".join(web.seeds()))
    began = time.monotonic()
    process = silkline.start("crawl", "--seeds", str(seeds), *OPTIONS, *sizes, SILKLINE_MEMORY_LIMIT=str(MEMORY))
    try:
        out, most = watched(process)
    finally:
        silkline.end()
    took = time.monotonic() - began
    with closing(open_database(database_url)) as database:
        (job,) = jobs.page(database, wanted=2)
        rows = ledger(database, job.id)
        stored = Counter(result.final_url for result in results.every(database, job.id))
    assert process.returncode == 0, out
    assert (job.status, job.attempt, job.crash_count, job.retry_count) == ("completed", 1, 0, 0), job
    assert web.good() - set(stored) == set()
    assert set(stored.values()) == {1}
    ends = {}
    for host, name in NAMES.items():
        path = "/bomb" if name in PAGES else "/map.xml" if name in SITEMAPS else "/"
        row = rows[f"http://{host}:{web.port}{path}"]
        ends[name] = (row.state, row.reason)
        assert row.state in ("done", "failed", "skipped"), (name, row)
        assert (row.reason is None) == (row.state == "done"), (name, row)
    reasons = Counter(f"{state} {reason or ''}".strip() for state, reason in ends.values())
    figure.append(
        f"{len(web.good())} good pages, {len(NAMES)} bombs, {took:.0f} s, {most >> 20} MiB at most; {dict(reasons)}"
    )

"""A site that makes endless links fills the ledger with some of them; the others are only counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from silkline.crawl.traps import LAST_ROW
from silkline.model.ledger import Url, not_stored
from silkline.model.url import host_of
from silkline.store import urls
from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_orders import until
from tests.crawl.test_polite import fixed, index

MakeCrawl = Callable[..., Crawl]
LINKS = 200
TUNING = {"template_budget": 50, "trap_rows": 20, "checkpoint_seconds": 0.05}


@pytest.fixture
def server() -> Iterator[HostileServer]:
    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        """Page n links to 200 pages that no other page links to, and to the start."""
        first = int(asked.path.rpartition("/")[2]) * LINKS + 1
        writer.write(index("/n/1/0", *(f"/n/1/{number}" for number in range(first, first + LINKS))))

    with HostileServer(addresses=["127.0.0.1", "127.0.0.2", "127.0.0.3"]) as running:
        running.route("/robots.txt", fixed(answer(b"not here", "404 Not Found")))
        running.route("/n", endless)
        yield running


def trap_rows(crawl: Crawl) -> list[Url]:
    """In the order of discovery."""
    return sorted((row for row in crawl.ledger().values() if row.reason == "trap"), key=lambda row: row.id)


def test_after_some_rows_the_urls_of_a_trap_are_only_counted(server: HostileServer, make_crawl: MakeCrawl) -> None:
    crawl = make_crawl(**TUNING)
    assert crawl.run(url=server.url("/n/1/0"), fetchers=1, limit=40) == "completed"
    crawl.assert_books_balance()
    rows, counts = trap_rows(crawl), crawl.counts
    assert len(rows) == 20
    assert [LAST_ROW in (row.detail or "") for row in rows] == [False] * 19 + [True]
    seen = counts.discovered + not_stored(counts)
    assert seen > 40 * LINKS
    assert (seen - 1) % LINKS == 0, "a URL was counted twice, or not at all"
    unknown = urls.why_not_stored(crawl.database, crawl.job.id)
    assert f"at least {not_stored(counts):,} URLs" in unknown


def test_each_host_has_its_own_rows(server: HostileServer, make_crawl: MakeCrawl) -> None:
    starts = [server.url("/n/1/0", f"127.0.0.{host}") for host in (1, 2, 3)]
    server.route("/", fixed(index(*starts)))
    crawl = make_crawl(**TUNING)
    assert crawl.run(url=server.url("/"), scope="any", fetchers=2) == "completed"
    crawl.assert_books_balance()
    assert Counter(row.host for row in trap_rows(crawl)) == {host_of(start): 20 for start in starts}


@pytest.mark.parametrize("fetchers", [1, 2])
def test_the_count_survives_a_kill_and_no_more_rows_are_stored(
    server: HostileServer, make_crawl: MakeCrawl, fetchers: int
) -> None:
    crawl = make_crawl(**TUNING)
    crawl.enqueue(url=server.url("/n/1/0"), concurrency=2)
    crawl.start(fetchers=fetchers)
    until("URLs are only counted", lambda: not_stored(crawl.counts) > 0)
    crawl.kill()
    counted = not_stored(crawl.counts)
    assert counted > 0
    assert len(trap_rows(crawl)) == 20
    crawl.put_back()
    crawl.start(limit=crawl.counts.done + 1)
    assert crawl.finish() == "completed"
    crawl.assert_books_balance()
    assert len(trap_rows(crawl)) == 20
    assert not_stored(crawl.counts) >= counted


@pytest.mark.parametrize("fetchers", [1, 2])
def test_what_the_pages_of_a_host_bring_is_bounded_in_bytes_after_a_kill_too(
    server: HostileServer, make_crawl: MakeCrawl, fetchers: int
) -> None:
    async def long_links(asked: Asked, writer: asyncio.StreamWriter) -> None:
        """Each page links to the next two, and by a long `<base>` to 30 URLs of another host."""
        number = int(asked.path.rpartition("/")[2])
        own = "".join(f"<a href=/long/{each}>x</a>" for each in (2 * number + 1, 2 * number + 2))
        links = "".join(f"<a href={each}>" for each in range(30))
        base = f"<base href='http://other.example/{number}/{'y' * 4_000}/'>"
        writer.write(answer(own.replace("=/", f"={server.url('/')}").encode() + base.encode() + links.encode()))

    server.route("/long", long_links)
    crawl = make_crawl(source_bytes=400_000, checkpoint_seconds=0.05)
    crawl.enqueue(url=server.url("/long/0"), concurrency=2)
    crawl.start(fetchers=fetchers)
    until("URLs are only counted", lambda: not_stored(crawl.counts) > 0)
    crawl.kill()
    counted, before = not_stored(crawl.counts), foreign_bytes(crawl)
    assert counted > 0
    assert 300_000 < before <= 400_000
    crawl.put_back()
    crawl.start(limit=crawl.counts.done + 20)
    assert crawl.finish() == "completed"
    crawl.assert_books_balance()
    assert foreign_bytes(crawl) <= 400_000
    assert not_stored(crawl.counts) >= counted


def foreign_bytes(crawl: Crawl) -> int:
    return sum(len(row.url) for row in crawl.ledger().values() if row.reason == "out_of_scope")

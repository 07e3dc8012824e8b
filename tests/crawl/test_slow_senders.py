"""Pages that take long to read are read in a process of their own if somebody else would wait for them.

A page hook takes the time, and says which process has read the page.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from silkline.crawl.parser import FEW_AT_PARSER
from silkline.crawl.slow_senders import QUICK_UNTIL_TRUSTED
from tests.crawl import harness
from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_polite import fixed, index
from tests.support.plugins import install

MakeCrawl = Callable[..., Crawl]
GOOD = [f"/good/{number}" for number in range(10)]
SLOW = [f"/slow/{number}" for number in range(6)]
HOOK = """
import os, time
from silkline.model.hook import Additions

def look(page):
    end = time.thread_time() + (0.15 if "/slow/" in page.url else 0)
    while time.thread_time() < end:
        pass
    return Additions(data={"process": os.getpid(), "read_at": time.monotonic()})
"""


@pytest.fixture
def server() -> Iterator[HostileServer]:
    """Every slow page links to the next one: it is fetched when the one before it was read."""

    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2])
        writer.write(index(*SLOW[number + 1 : number + 2]))

    with HostileServer(addresses=["127.0.0.1", "127.0.0.2"]) as running:
        running.route("/robots.txt", fixed(answer(b"not here", "404 Not Found")))
        running.route("/slow", slow)
        running.route("/good", fixed(answer(b"<p>words")))
        yield running


@pytest.fixture(autouse=True)
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install(tmp_path / "plugins", {"who_reads": HOOK}, {}, {"who": "who_reads:look"})
    path = os.pathsep.join((str(folder), harness.ENVIRONMENT["PYTHONPATH"]))
    monkeypatch.setitem(harness.ENVIRONMENT, "PYTHONPATH", path)


def readers(crawl: Crawl) -> dict[str, int]:
    """The process that has read each page."""
    return {result.final_url: result.data["process"] for result in crawl.results()}


@pytest.mark.parametrize("parsers", [0, 1])
def test_slow_pages_are_read_elsewhere_while_others_have_quick_ones(
    server: HostileServer, make_crawl: MakeCrawl, parsers: int
) -> None:
    slow, good = [server.url(path, "127.0.0.2") for path in SLOW], [server.url(path) for path in GOOD]
    server.route("/", fixed(index(slow[0], *good)))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), scope="any", fetchers=1, parsers=parsers) == "completed"
    assert {row.state for row in crawl.ledger().values()} == {"done"}
    read_by = readers(crawl)
    usual = {read_by[url] for url in (server.url("/"), *good)}
    assert len(usual) == 1
    assert [read_by[url] in usual for url in slow] == [True] + [False] * 5, "one page shows that its host is slow"
    crawl.assert_books_balance()


def test_a_host_whose_pages_are_quick_again_is_read_as_usual_again(
    server: HostileServer, make_crawl: MakeCrawl
) -> None:
    calm = [f"/calm/{number}" for number in range(QUICK_UNTIL_TRUSTED + 3)]

    async def quick(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2])
        writer.write(index(*calm[number + 1 : number + 2]))

    server.route("/", fixed(index(server.url(SLOW[0], "127.0.0.2"))))
    server.route("/slow", fixed(index(calm[0])))
    server.route("/calm", quick)
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), scope="any", fetchers=1, parsers=0) == "completed"
    read_by = readers(crawl)
    usual = [read_by[server.url(path, "127.0.0.2")] == read_by[server.url("/")] for path in calm]
    assert usual == [False] * QUICK_UNTIL_TRUSTED + [True] * 3


def test_slow_pages_that_wait_for_a_parser_do_not_stop_pages_that_come_later(make_crawl: MakeCrawl) -> None:
    """All slow pages are at the parser, or wait for it, when the first page of the other host is sent."""
    hosts, pages = [f"127.0.1.{number}" for number in range(1, 7)], [f"/slow/{number}" for number in range(1, 7)]
    all_asked = asyncio.Event()

    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if len({(each.address, each.path) for each in server.requests if each.path in pages}) == 36:
            all_asked.set()
        writer.write(index(*pages))

    async def good(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await all_asked.wait()
        writer.write(index(*GOOD))

    with HostileServer(addresses=["127.0.0.1", *hosts]) as server:
        server.route("/robots.txt", fixed(answer(b"not here", "404 Not Found")))
        server.route("/slow", slow)
        server.route("/good", good)
        crawl = make_crawl()
        seeds = [server.url(GOOD[0]), *(server.url("/slow/0", host) for host in hosts)]
        assert crawl.run(urls=seeds, scope="any", fetchers=1, parsers=1, concurrency=64) == "completed"
    assert {row.state for row in crawl.ledger().values()} == {"done"}
    parser = readers(crawl)[server.url(GOOD[0])]
    order = sorted(crawl.results(), key=lambda result: result.data["read_at"])
    read = ["/slow/" in result.final_url for result in order if result.data["process"] == parser]
    last_good = max(place for place, is_slow in enumerate(read) if not is_slow)
    # The first page of each host, those that the parser had when the good page came, and those until it was read.
    assert read[:last_good].count(True) <= len(hosts) + 3 * FEW_AT_PARSER
    assert read.count(False) == len(GOOD)
    crawl.assert_books_balance()


@pytest.mark.parametrize("parsers", [0, 1])
def test_the_pages_of_one_slow_host_are_read_as_usual(
    server: HostileServer, make_crawl: MakeCrawl, parsers: int
) -> None:
    server.route("/", fixed(index(SLOW[0], *GOOD)))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), fetchers=1, parsers=parsers) == "completed"
    read_by = readers(crawl)
    assert set(read_by) == {server.url(path) for path in ("/", *SLOW, *GOOD)}
    assert len(set(read_by.values())) == 1

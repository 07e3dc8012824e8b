"""A fetcher or parser that is stopped, and not dead, is replaced: the crawl goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_orders import until
from tests.crawl.test_polite import fixed, index

ADDRESSES = [f"127.0.0.{number}" for number in range(1, 9)]


@pytest.fixture
def server() -> Iterator[HostileServer]:
    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2])
        writer.write(index(f"/n/{2 * number + 1}", f"/n/{2 * number + 2}"))

    with HostileServer(addresses=ADDRESSES) as running:
        running.route("/robots.txt", fixed(answer(b"not here", "404 Not Found")))
        running.route("/n", endless)
        running.route("/", fixed(index(*(running.url("/n/0", address) for address in ADDRESSES))))
        yield running


@pytest.mark.parametrize("role", ["parser", "fetcher"])
def test_a_stopped_process_is_replaced(server: HostileServer, make_crawl: Callable[..., Crawl], role: str) -> None:
    crawl = make_crawl(read_seconds=1.0, checkpoint_seconds=0.05)
    crawl.enqueue(url=server.url("/"), scope="any", fetchers=2, parsers=1, concurrency=1)
    crawl.start()
    until("pages are stored", lambda: crawl.counts.done > 10)
    (stopped,) = crawl.children(role)
    stopped.suspend()
    # A process that is still starting has a minute to answer.
    until("it is killed", lambda: not stopped.is_running(), timeout=150)
    before = crawl.counts.done
    until("the crawl goes on", lambda: crawl.counts.done > before + 50)
    (another,) = crawl.children(role)
    assert another.pid != stopped.pid
    crawl.order("stopped")
    assert crawl.finish() == "stopped"
    crawl.assert_books_balance()

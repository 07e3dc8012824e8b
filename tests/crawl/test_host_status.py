"""A crawl that waits says for whom and why, while it does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from silkline.model import host_wait as reasons
from silkline.model.host_wait import Wait, waits_in
from silkline.store import urls
from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, Route, answer
from tests.crawl.hostile_server import HostileServer
from tests.support.supervisors import eventually

LINKS = answer(b'<a href="/ok/1">1</a><a href="/ok/2">2</a><a href="/ok/3">3</a>')


def fixed(response: bytes) -> Route:
    async def route(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(response)

    return route


def robots(text: str) -> Route:
    return fixed(answer(text.encode(), content_type="text/plain"))


def waiting(crawl: Crawl, server: HostileServer, reason: str, **spec: object) -> Wait:
    """The first word of this reason about the server, while the crawl runs."""
    crawl.enqueue(url=server.url("/"), fetchers=spec.pop("fetchers", 1), **spec)
    crawl.start()

    def look() -> Wait | None:
        assert crawl.process.poll() is None, "the crawl ended"
        found = waits_in(urls.counts(crawl.database, crawl.job.id).live)
        return next((wait for wait in found if wait.reason == reason), None)

    found: Wait = eventually(f"a host waits because of {reason}", look)
    assert found.host == server.url("/").removeprefix("http://").rstrip("/")
    return found


@pytest.mark.parametrize("fetchers", [1, 2])
def test_robots_txt_asks_for_time(make_crawl: Callable[..., Crawl], fetchers: int) -> None:
    with HostileServer() as server:
        server.route("/", fixed(LINKS))
        server.route("/robots.txt", robots("User-agent: *\nCrawl-delay: 30\n"))
        crawl, began = make_crawl(look_seconds=0.05, idle_seconds=0.2), time.time()
        wait = waiting(crawl, server, reasons.CRAWL_DELAY, fetchers=fetchers)
        assert wait.seconds == 30.0
        assert wait.queued == 1
        assert wait.next_at is not None
        assert began < wait.next_at < time.time() + 30, "a time of day"


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_the_server_asks_for_time(make_crawl: Callable[..., Crawl], status: str) -> None:
    with HostileServer() as server:
        server.route("/", fixed(LINKS))
        server.route("/ok", fixed(answer(b"", status, retry_after="60")))
        # One at a time: of several the first may have been refused while the others are still on their way.
        wait = waiting(make_crawl(look_seconds=0.05), server, reasons.RETRY_AFTER, speed="polite", delay=0)
        assert (wait.detail, wait.seconds, wait.in_flight) == (f"http_{status[:3]}", 60.0, 0)
        assert wait.queued == 3


def test_the_server_fails(make_crawl: Callable[..., Crawl]) -> None:
    with HostileServer() as server:
        server.route("/robots.txt", fixed(answer(b"", "500 Internal Server Error")))
        crawl = make_crawl(look_seconds=0.05, idle_seconds=0.2, retry_base=120.0)
        wait = waiting(crawl, server, reasons.ROBOTS_UNAVAILABLE)
        assert wait.detail == "http_500"


def test_robots_txt_takes_its_time(make_crawl: Callable[..., Crawl]) -> None:
    async def never(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3_600)

    with HostileServer() as server:
        server.route("/robots.txt", never)
        wait = waiting(make_crawl(look_seconds=0.05, idle_seconds=0.2), server, reasons.ROBOTS_LOADING)
        assert wait.next_at is None


def test_a_page_takes_its_time(make_crawl: Callable[..., Crawl]) -> None:
    async def never(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3_600)

    with HostileServer() as server:
        server.route("/", fixed(LINKS))
        server.route("/ok", never)
        crawl = make_crawl(look_seconds=0.05, idle_seconds=0.2, total_timeout=600.0, idle_timeout=600.0)
        wait = waiting(crawl, server, reasons.BUSY, speed="polite", delay=0)
        assert (wait.in_flight, wait.queued) == (1, 2)

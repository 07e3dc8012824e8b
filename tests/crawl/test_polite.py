"""Politeness, proved by what the server itself saw."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.crawl.harness import Crawl, SyntheticWeb, closing
from tests.crawl.hostile_routes import Asked, Route, answer
from tests.crawl.hostile_server import HostileServer

MakeCrawl = Callable[..., Crawl]
PAGES = 6
LEAST = 0.98  # timers may ring a millisecond early


def index(*links: str) -> bytes:
    return answer(("<title>Index</title>" + "".join(f'<a href="{link}">x</a>' for link in links)).encode())


def fixed(response: bytes) -> Route:
    async def route(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(response)

    return route


class Meter:
    """A route that takes a while, and remembers how many requests were open at once, on all servers that have it.

    The first ones are held until `wanted` are open: a slow machine might else never send two of them at once.
    """

    def __init__(self, wanted: int = 1) -> None:
        self.open = 0
        self.most = 0
        self._wanted = wanted
        self._lock = threading.Lock()
        self._met = threading.Event()

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self._count(1)
        await asyncio.to_thread(self._met.wait, 60)
        await asyncio.sleep(0.05)
        self._count(-1)
        writer.write(answer())

    def _count(self, change: int) -> None:
        with self._lock:
            self.open += change
            self.most = max(self.most, self.open)
            if self.open >= self._wanted:
                self._met.set()


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        running.route("/", fixed(index(*(f"/ok/{number}" for number in range(PAGES)))))
        running.route("/robots.txt", fixed(answer(b"not here", "404 Not Found")))
        yield running


def times(server: HostileServer, prefix: str = "/ok") -> list[float]:
    return [asked.at for asked in server.requests if asked.path.startswith(prefix)]


def span(moments: list[float]) -> float:
    return moments[-1] - moments[0]


def span_from(server: HostileServer, moments: list[float]) -> float:
    """From the moment at which the index was asked for, and so before the first of these requests was sent.

    The server may notice a request long after that, and so find less time between two of them than there was.
    """
    return moments[-1] - next(asked.at for asked in server.requests if asked.path == "/")


def test_the_delay_between_two_requests(server: HostileServer, make_crawl: MakeCrawl) -> None:
    make_crawl().run(url=server.url("/"), speed="normal", delay=0.25)
    assert len(times(server)) == PAGES
    assert span_from(server, times(server)) > LEAST * 0.25 * (PAGES - 1)


def test_robots_txt_comes_first_and_once(server: HostileServer, make_crawl: MakeCrawl) -> None:
    make_crawl().run(url=server.url("/"))
    assert server.paths()[0] == "/robots.txt"
    assert server.paths().count("/robots.txt") == 1


def test_what_robots_txt_forbids_is_never_asked_for(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/robots.txt", fixed(answer(b"User-agent: *\nDisallow: /ok/1\n", content_type="text/plain")))
    crawl = make_crawl()
    crawl.run(url=server.url("/"))
    assert "/ok/1" not in server.paths()
    row = crawl.ledger()[server.url("/ok/1")]
    assert (row.state, row.reason, row.detail) == ("skipped", "robots", "Disallow: /ok/1")
    assert crawl.counts.done == PAGES


def test_robots_txt_is_for_us_by_name(server: HostileServer, make_crawl: MakeCrawl) -> None:
    rules = b"User-agent: silkline\nDisallow: /ok/1\n\nUser-agent: *\nDisallow: /\n"
    server.route("/robots.txt", fixed(answer(rules, content_type="text/plain")))
    crawl = make_crawl()
    crawl.run(url=server.url("/"))
    assert crawl.counts.done == PAGES
    assert "/ok/1" not in server.paths()


def test_the_operator_may_ignore_robots_txt(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/robots.txt", fixed(answer(b"User-agent: *\nDisallow: /\n", content_type="text/plain")))
    crawl = make_crawl()
    crawl.run(url=server.url("/"), ignore_robots=True)
    assert crawl.counts.done == PAGES + 1
    assert "/robots.txt" not in server.paths()


def test_crawl_delay(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/robots.txt", fixed(answer(b"User-agent: *\nCrawl-delay: 0.25\n", content_type="text/plain")))
    make_crawl().run(url=server.url("/"))
    assert span_from(server, times(server)) > LEAST * 0.25 * (PAGES - 1)


@pytest.mark.parametrize(("speed", "at_once"), [("polite", 1), ("normal", 2), ("fast", 4)])
def test_requests_in_flight_at_one_host(server: HostileServer, make_crawl: MakeCrawl, speed: str, at_once: int) -> None:
    meter = Meter(wanted=2 if speed == "fast" else 1)
    server.route("/", fixed(index(*(f"/slow/{number}" for number in range(20)))))
    server.route("/slow", meter)
    make_crawl().run(url=server.url("/"), speed=speed, delay=0)
    assert meter.most <= at_once
    if speed == "fast":
        assert meter.most > 1, "the meter does not measure"


def test_hosts_that_share_an_address_share_its_limits(make_crawl: MakeCrawl) -> None:
    meter = Meter(wanted=2)
    with ExitStack() as stack:
        servers = [stack.enter_context(HostileServer()) for _ in range(6)]
        for server in servers:
            server.route("/slow", meter)
        seeds = [server.url(f"/slow/{number}") for server in servers for number in range(4)]
        crawl = make_crawl()
        crawl.run(urls=seeds, speed="polite", delay=0, fetchers=1)
    assert crawl.counts.done == len(seeds)
    assert meter.most == 2


def test_the_spacing_of_requests_to_a_shared_address(make_crawl: MakeCrawl) -> None:
    with ExitStack() as stack:
        first, *servers = [stack.enter_context(HostileServer()) for _ in range(7)]
        first.route("/", fixed(index(*(server.url("/ok/1") for server in servers))))
        crawl = make_crawl()
        crawl.run(url=first.url("/"), scope="any", speed="polite", delay=0.5, fetchers=1, ignore_robots=True)
        moments = sorted(moment for server in servers for moment in times(server))
        waited = span_from(first, moments)
    assert len(moments) == 6
    assert waited > LEAST * 5 * 0.25, "two hosts at once, half a second each: a request in a quarter of a second"


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_retry_after_slows_the_whole_host(server: HostileServer, make_crawl: MakeCrawl, status: str) -> None:
    refused = []

    async def busy_once(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if not refused:
            refused.append(asked.at)
            writer.write(answer(b"", status, retry_after="2"))
        else:
            writer.write(answer())

    server.route("/ok", busy_once)
    crawl = make_crawl(retry_base=0.01)
    crawl.run(url=server.url("/"), speed="normal", delay=0.01)
    assert crawl.counts.done == PAGES + 1
    early = [moment for moment in times(server) if moment - refused[0] < 1.9]
    assert len(early) <= 3, "only what was on its way already may come after a refusal"


def test_a_slow_host_is_asked_more_slowly(server: HostileServer, make_crawl: MakeCrawl) -> None:
    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(answer())

    server.route("/ok", slow)
    make_crawl().run(url=server.url("/"), speed="polite", delay=0)
    settled = times(server)[1:]
    assert span(settled) > 0.7 * 0.4 * (len(settled) - 1), "twice its answering time lies between two requests"


def test_who_we_are(server: HostileServer, make_crawl: MakeCrawl) -> None:
    make_crawl().run(url=server.url("/"), contact="owner@example.com")
    agents = {asked.headers["user-agent"] for asked in server.requests}
    assert len(agents) == 1
    agent = agents.pop()
    assert agent.startswith("Silkline/")
    assert "owner@example.com" in agent


def test_headers_and_cookies_of_the_job_stay_with_its_own_origin(server: HostileServer, make_crawl: MakeCrawl) -> None:
    with HostileServer() as other:
        server.route("/", fixed(index("/ok/1", other.url("/ok/2"))))
        make_crawl().run(
            url=server.url("/"), scope="any", headers={"X-Secret": "1"}, cookies={"session": "2"}, fetchers=1
        )
        ours = [asked for asked in server.requests if asked.path == "/ok/1"]
        theirs = [asked for asked in other.requests if asked.path == "/ok/2"]
    assert (ours[0].headers.get("x-secret"), ours[0].headers.get("cookie")) == ("1", "session=2")
    assert theirs
    assert {"x-secret", "cookie"}.isdisjoint(theirs[0].headers)


def test_robots_txt_of_many_hosts_is_asked_for_within_the_concurrency(make_crawl: MakeCrawl) -> None:
    meter = Meter()
    addresses = [f"127.0.1.{number}" for number in range(1, 31)]
    with HostileServer(addresses=addresses) as server:
        server.route("/robots.txt", meter)
        crawl = make_crawl()
        crawl.run(urls=[server.url("/ok/1", address) for address in addresses], fetchers=1, concurrency=3)
    assert crawl.counts.done == 30
    assert meter.most <= 3


def test_a_host_is_not_connected_to_again_for_every_page(make_crawl: MakeCrawl) -> None:
    with closing(SyntheticWeb(hosts=200, pages=6)) as web:
        crawl = make_crawl()
        assert crawl.run(url=web.start, scope="any", fetchers=1, concurrency=8) == "completed"
        asked, connections = len(web.log()), web.connections()
        print(f"{asked} requests, {connections} connections")
        assert crawl.counts.done == len(web.reachable()) > 800
    assert asked > 1000, "a robots.txt for each host, and its pages"
    assert connections < 400, "about one for each host, of which two hundred are met in turn"

"""What one host says about the URLs of another one must not cost that host its own pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from silkline.crawl.plan import Tuning
from silkline.model.ledger import FOREIGN
from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, Route, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_foreign_sitemaps import by_site, plain
from tests.crawl.test_polite import fixed, index
from tests.crawl.test_sitemap_limits import asked_at

MakeCrawl = Callable[..., Crawl]
GOOD, EVIL = "127.0.0.1", "127.0.0.2"
PAGES = 12
JUNK = [f"/junk/{number}" for number in range(60)]


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer(addresses=[GOOD, EVIL]) as running:
        running.route("/robots.txt", fixed(plain()))
        yield running


def chain_of_pages(last: int) -> Route:
    """`/page/1` links to `/page/2`, and so on: each page is one level deeper."""

    async def route(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2])
        writer.write(index(*([f"/page/{number + 1}"] if number < last else [])))

    return route


def started_by_evil(server: HostileServer, links: list[str]) -> None:
    """The page of the evil site comes first; the good one waits for a request that follows from it."""
    is_asked = asyncio.Event()

    async def junk(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        writer.write(answer(b"down", "500 Internal Server Error") if asked.path.endswith("bad") else index())

    server.route("/junk/", junk)
    server.route("/", by_site(index("/page/1"), index(*links), until=is_asked))
    server.route("/page/", chain_of_pages(PAGES))


def seeds(server: HostileServer) -> list[str]:
    return [server.url("/", EVIL), server.url("/")]


@pytest.mark.parametrize("fetchers", [1, 2])
@pytest.mark.parametrize("ending", ["", "bad"], ids=["pages", "failures"])
def test_the_pages_of_a_host_do_not_wait_for_links_of_others(
    server: HostileServer, make_crawl: MakeCrawl, ending: str, fetchers: int
) -> None:
    started_by_evil(server, [server.url(path + ending) for path in JUNK])
    crawl = make_crawl(tries=1)
    assert crawl.run(urls=seeds(server), fetchers=fetchers, delay=0.01) == "completed"
    ledger = crawl.ledger()
    assert {ledger[server.url(f"/page/{number}")].state for number in range(1, PAGES + 1)} == {"done"}
    assert {ledger[server.url(path + ending)].found_via for path in JUNK} == {FOREIGN}
    assert {ledger[server.url(f"/page/{number}")].found_via for number in range(1, PAGES + 1)} == {"link"}
    asked = asked_at(server, GOOD)
    before = asked[: asked.index(f"/page/{PAGES}")]
    assert sum(path.startswith("/junk/") for path in before) <= 2 * PAGES + 4


@pytest.mark.parametrize("fetchers", [1, 2])
def test_links_of_others_take_no_room_in_memory_of_the_pages_of_a_host(
    server: HostileServer, make_crawl: MakeCrawl, fetchers: int
) -> None:
    """More links than memory holds, to pages that do not exist. All of them are in the ledger before `/page/2` is."""
    junk = [server.url(f"/junk/{number}") for number in range(300)]
    is_asked = asyncio.Event()

    async def missing(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        writer.write(answer(b"none", "404 Not Found"))

    server.route("/junk/", missing)
    server.route("/", by_site(index("/page/1"), index(*junk), until=is_asked))
    server.route("/page/", chain_of_pages(PAGES))
    crawl = make_crawl(window=64, per_host_window=8, refill_rows=20, checkpoint_seconds=0.05)
    assert crawl.run(urls=seeds(server), fetchers=fetchers, delay=0.005) == "completed"
    ledger = crawl.ledger()
    assert {ledger[server.url(f"/page/{number}")].state for number in range(1, PAGES + 1)} == {"done"}
    assert {ledger[url].reason for url in junk} == {"http_404"}, "each of them is read again"
    asked = asked_at(server, GOOD)
    assert len(asked) == len(set(asked))
    before = asked[: asked.index(f"/page/{PAGES}")]
    assert sum(path.startswith("/junk/") for path in before) <= len(junk) // 3, "some come while a page is recorded"


def test_redirects_of_others_do_not_use_up_those_of_a_host(server: HostileServer, make_crawl: MakeCrawl) -> None:
    most = Tuning().max_redirects

    def moved(to: str) -> bytes:
        return answer(b"", "302 Found", location=to)

    async def hop(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2])
        writer.write(moved(server.url(f"/hop/{number + 1}", EVIL) if number < most - 1 else server.url("/old/1")))

    async def old(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2])
        writer.write(moved(server.url(f"/old/{number + 1}" if number < most else "/new")))

    is_asked = asyncio.Event()

    async def good_old(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        await old(asked, writer)

    server.route("/", by_site(index("/old/1"), index("/hop/0"), until=is_asked))
    server.route("/hop/", hop)
    server.route("/old/", good_old)
    server.route("/new", fixed(index()))
    crawl = make_crawl()
    assert crawl.run(urls=seeds(server), fetchers=1, delay=0.01) == "completed"
    assert crawl.ledger()[server.url("/new")].state == "done"


@pytest.mark.parametrize("fetchers", [1, 2])
def test_redirects_do_not_turn_foreign_links_into_own_ones(
    server: HostileServer, make_crawl: MakeCrawl, fetchers: int
) -> None:
    """A redirect of a URL that only others link to, and a redirect of another host, is no link of the host itself."""

    async def moved(asked: Asked, writer: asyncio.StreamWriter) -> None:
        to = server.url(asked.path.removeprefix("/moved")) if asked.address == EVIL else asked.path + "/"
        writer.write(answer(b"", "302 Found", location=to))

    server.route("/", by_site(index("/own"), index(server.url("/junk"), "/moved/landed")))
    server.route("/home", fixed(answer(b"", "302 Found", location=server.url("/"))))
    for path in ("/own", "/junk", "/landed"):
        server.route(path, moved)
        server.route(path + "/", fixed(index()))
    server.route("/moved/", moved)
    crawl = make_crawl()
    roots = [server.url("/", EVIL), server.url("/home", EVIL)]
    assert crawl.run(urls=roots, fetchers=fetchers, scope="any") == "completed"
    vias = {url.removeprefix(server.url("")): row.found_via for url, row in crawl.ledger().items()}
    expected = {"/": "redirect", "/own": "link", "/own/": "redirect"}
    expected |= dict.fromkeys(("/junk", "/junk/", "/landed", "/landed/"), FOREIGN)
    assert {path: vias[path] for path in expected} == expected


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_limited_path_that_another_site_links_to_stops_no_pages(
    server: HostileServer, make_crawl: MakeCrawl, status: str
) -> None:
    is_refused = asyncio.Event()

    async def limited(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_refused.set()
        writer.write(answer(b"slow down", status, retry_after="3600"))

    server.route("/limited", limited)
    server.route("/", by_site(index("/page/1"), index(server.url("/limited")), until=is_refused))
    server.route("/page/", chain_of_pages(PAGES))
    crawl = make_crawl()
    assert crawl.run(urls=seeds(server), fetchers=1, speed="fast") == "completed"
    ledger = crawl.ledger()
    assert {ledger[server.url(f"/page/{number}")].state for number in range(1, PAGES + 1)} == {"done"}
    assert ledger[server.url("/limited")].state == "failed"


def test_endless_redirects_between_two_hosts_end(server: HostileServer, make_crawl: MakeCrawl) -> None:
    async def hop(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2]) + 1
        there = server.url(f"/hop/{number}", GOOD if number % 2 else EVIL)
        writer.write(answer(b"", "302 Found", location=there))

    server.route("/", fixed(index("/hop/0")))
    server.route("/hop/", hop)
    crawl = make_crawl()
    assert crawl.run(urls=seeds(server), fetchers=1, delay=0.01) == "completed"
    reasons = [row.reason for url, row in crawl.ledger().items() if "/hop/" in url]
    assert "too_many_redirects" in reasons
    assert len(reasons) <= 2 * Tuning().max_redirects + 4


def test_a_text_that_another_site_names_as_its_sitemap_is_stored(server: HostileServer, make_crawl: MakeCrawl) -> None:
    notes = server.url("/notes.txt")
    is_named = asyncio.Event()

    async def text(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_named.set()
        writer.write(plain("Notes", "A first line.", "http://see.example/this", "The end."))

    server.route("/robots.txt", by_site(plain(), plain(f"Sitemap: {notes}")))
    server.route("/notes.txt", text)
    server.route("/", by_site(index("/notes.txt"), index(), until=is_named))
    crawl = make_crawl()
    assert crawl.run(urls=seeds(server), fetchers=1) == "completed"
    assert crawl.ledger()[notes].state == "done"


def test_a_list_of_urls_is_still_a_sitemap(server: HostileServer, make_crawl: MakeCrawl) -> None:
    listed = [server.url(f"/junk/{number}") for number in range(3)]
    server.route("/robots.txt", fixed(plain(f"Sitemap: {server.url('/map.txt')}")))
    server.route("/map.txt", fixed(plain("# all pages", *listed)))
    server.route("/junk/", fixed(index()))
    server.route("/", fixed(index()))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), fetchers=1) == "completed"
    ledger = crawl.ledger()
    assert {ledger[url].state for url in listed} == {"done"}
    assert ledger[server.url("/map.txt")].state == "skipped"

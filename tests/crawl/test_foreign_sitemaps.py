"""A site that names what is not its own as sitemaps: no page of another site is lost for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from silkline.crawl.sitemap_limits import MOST_FOREIGN, SitemapAllowance
from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, Route, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_polite import fixed, index
from tests.crawl.test_sitemap_limits import asked_at, sitemap_index, urlset

MakeCrawl = Callable[..., Crawl]
GOOD, EVIL = "127.0.0.1", "127.0.0.2"
PAGES = [f"/page/{number}" for number in range(20)]


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer(addresses=[GOOD, EVIL]) as running:
        running.route("/page/", fixed(index()))
        yield running


def by_site(
    good: bytes, evil: bytes, *, until: asyncio.Event | None = None, tells: asyncio.Event | None = None
) -> Route:
    """The evil site tells that it was asked. The good site waits until then, so what the evil one says comes first."""

    async def route(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.address == EVIL and tells is not None:
            tells.set()
        if asked.address == GOOD and until is not None:
            await until.wait()
        writer.write(good if asked.address == GOOD else evil)

    return route


def plain(*lines: str) -> bytes:
    return answer("\n".join(lines).encode(), content_type="text/plain")


def stored(crawl: Crawl, server: HostileServer) -> set[str]:
    return {url for url, row in crawl.ledger().items() if row.state == "done" and url.startswith(server.url("/page/"))}


@pytest.mark.parametrize("fetchers", [1, 2])
def test_a_page_that_another_site_names_as_its_sitemap_is_stored(
    server: HostileServer, make_crawl: MakeCrawl, fetchers: int
) -> None:
    named = plain(*(f"Sitemap: {server.url(path)}" for path in PAGES))
    is_named = asyncio.Event()

    async def page(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_named.set()
        writer.write(index())

    server.route("/robots.txt", by_site(plain(), named))
    server.route("/", by_site(index(*PAGES), index(), until=is_named))  # first only the evil site names its pages
    server.route("/page/", page)
    crawl = make_crawl()
    assert crawl.run(urls=[server.url("/", EVIL), server.url("/")], fetchers=fetchers) == "completed"
    assert stored(crawl, server) == {server.url(path) for path in PAGES}
    assert sum(path in PAGES for path in asked_at(server, GOOD)) == len(PAGES)
    assert sum(row.found_via == "robots" for row in crawl.ledger().values()) == MOST_FOREIGN


def test_an_index_does_not_use_up_the_sitemaps_of_other_sites(server: HostileServer, make_crawl: MakeCrawl) -> None:
    most = SitemapAllowance(50).sitemaps
    elsewhere = [f"http://x{number}.invalid/s.xml" for number in range(most)]
    own = [server.url(f"/own/{number}.xml", EVIL) for number in range(most)]
    is_read = asyncio.Event()
    named = [plain(f"Sitemap: {url}") for url in (server.url("/s.xml"), server.url("/i.xml", EVIL))]
    server.route("/robots.txt", by_site(*named, until=is_read))
    server.route("/", fixed(index()))
    server.route("/own/", by_site(urlset(), urlset(), tells=is_read))
    server.route("/i.xml", fixed(sitemap_index(*own, *elsewhere)))
    server.route("/s.xml", fixed(urlset(*map(server.url, PAGES))))
    crawl = make_crawl()
    seeds = [server.url("/", EVIL), server.url("/")]
    assert crawl.run(urls=seeds, limit=50, fetchers=1) == "completed"
    assert stored(crawl, server) == {server.url(path) for path in PAGES}


def test_pages_that_a_site_names_as_sitemaps_count_towards_the_limit(
    server: HostileServer, make_crawl: MakeCrawl
) -> None:
    server.route("/robots.txt", fixed(plain(*(f"Sitemap: {server.url(path)}" for path in PAGES))))
    server.route("/", fixed(index(*PAGES)))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), limit=4) == "completed"
    assert sum(row.state == "done" for row in crawl.ledger().values()) == 4

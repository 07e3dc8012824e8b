"""Sitemaps without end: bounded in number, depth and what is taken from them, and bound to rules and scope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from silkline.crawl.sitemap_limits import MOST_FOREIGN, MOST_NESTED, SitemapAllowance
from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_polite import fixed, index

MakeCrawl = Callable[..., Crawl]
HOME, THIRD = "127.0.0.1", "127.0.0.3"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer(addresses=[HOME, "127.0.0.2", THIRD]) as running:
        running.route("/", fixed(index("/a")))
        running.route("/a", fixed(index()))
        yield running


def xml(body: str) -> bytes:
    return answer(body.encode(), content_type="text/xml")


def sitemap_index(*urls: str) -> bytes:
    return xml("<sitemapindex>" + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls) + "</sitemapindex>")


def urlset(*urls: str) -> bytes:
    return xml("<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>")


def robots(server: HostileServer, text: str, elsewhere: str = "User-agent: *\nDisallow: /") -> None:
    """One robots.txt for the crawl's own host, one for all others."""

    async def route(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer((text if asked.address == HOME else elsewhere).encode(), content_type="text/plain"))

    server.route("/robots.txt", route)


def asked_at(server: HostileServer, address: str) -> list[str]:
    return [asked.path for asked in server.requests if asked.address == address]


def test_an_index_without_end_is_left_after_a_few_levels(server: HostileServer, make_crawl: MakeCrawl) -> None:
    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.removeprefix("/endless/"))
        writer.write(sitemap_index(*(server.url(f"/endless/{number + more}") for more in (1,))))

    robots(server, f"Sitemap: {server.url('/endless/0')}")
    server.route("/endless/", endless)
    crawl = make_crawl()
    assert crawl.run(url=server.url("/")) == "completed"
    assert len([path for path in server.paths() if path.startswith("/endless/")]) == MOST_NESTED + 1
    last = crawl.ledger()[server.url(f"/endless/{MOST_NESTED + 1}")]
    assert (last.state, last.reason) == ("skipped", "over_limit")


def test_a_small_limit_takes_little_from_endless_sitemaps(server: HostileServer, make_crawl: MakeCrawl) -> None:
    """Every sitemap lists thousands of pages that do not exist, and more sitemaps."""

    async def pages(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(urlset(*(server.url(f"/missing{asked.path}/{number}") for number in range(3_000))))

    async def missing(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"", "404 Not Found"))

    robots(server, f"Sitemap: {server.url('/index')}")
    server.route("/index", fixed(sitemap_index(*(server.url(f"/pages/{number}") for number in range(3_000)))))
    server.route("/pages/", pages)
    server.route("/missing/", missing)
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), limit=10, depth=1, scope="host") == "completed"
    allowance = SitemapAllowance(10)
    ledger = crawl.ledger()
    assert len(ledger) <= allowance.urls + allowance.sitemaps + 10
    assert len(server.requests) <= allowance.urls + allowance.sitemaps + 10
    listing = ledger[server.url("/index")]
    assert listing.reason == "sitemap"
    assert "of 3000 entries taken" in (listing.detail or "")
    assert "over_limit" in {row.reason for row in ledger.values() if "/pages/" in row.url}


def test_sitemaps_elsewhere_must_be_named_by_robots_txt(server: HostileServer, make_crawl: MakeCrawl) -> None:
    named = [server.url(f"/named/{number}", THIRD) for number in range(20)]
    lines = "".join(f"Sitemap: {url}\n" for url in [server.url("/own"), *named])
    robots(server, lines, elsewhere=f"Sitemap: {server.url('/never', '127.0.0.2')}")
    server.route("/own", fixed(sitemap_index(server.url("/unnamed", THIRD), server.url("/unnamed", "127.0.0.2"))))
    server.route("/named/", fixed(sitemap_index(server.url("/unnamed", THIRD))))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/")) == "completed"
    assert sorted(asked_at(server, THIRD)) == [*(f"/named/{number}" for number in range(MOST_FOREIGN)), "/robots.txt"]
    assert asked_at(server, "127.0.0.2") == []
    unnamed = crawl.ledger()[server.url("/unnamed", THIRD)]
    assert (unnamed.state, unnamed.reason) == ("skipped", "out_of_scope")


def test_sitemaps_obey_the_robots_txt_of_their_host(server: HostileServer, make_crawl: MakeCrawl) -> None:
    own = f"User-agent: *\nDisallow: /secret\nSitemap: {server.url('/secret.xml')}\n"
    robots(server, own + f"Sitemap: {server.url('/third.xml', THIRD)}\n")
    server.route("/secret.xml", fixed(urlset(server.url("/listed"))))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/")) == "completed"
    assert asked_at(server, THIRD) == ["/robots.txt"]
    assert "/secret.xml" not in server.paths()
    ledger = crawl.ledger()
    for url in (server.url("/secret.xml"), server.url("/third.xml", THIRD)):
        assert (ledger[url].state, ledger[url].reason) == ("skipped", "robots")


def test_a_sitemap_that_redirects_elsewhere_is_not_followed(server: HostileServer, make_crawl: MakeCrawl) -> None:
    robots(server, f"Sitemap: {server.url('/moved.xml')}", elsewhere="")
    server.route("/moved.xml", fixed(answer(b"", "302 Found", location=server.url("/away.xml", THIRD))))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/")) == "completed"
    assert asked_at(server, THIRD) == []
    assert crawl.ledger()[server.url("/away.xml", THIRD)].reason == "out_of_scope"


def test_no_sitemap_is_read_where_only_the_first_page_counts(server: HostileServer, make_crawl: MakeCrawl) -> None:
    robots(server, f"Sitemap: {server.url('/sitemap.xml')}")
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), depth=0) == "completed"
    assert "/sitemap.xml" not in server.paths()

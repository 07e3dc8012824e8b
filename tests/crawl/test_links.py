"""Every link of a crawl is written down once, whether it may be followed or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from silkline.store.backlinks import into, out_of
from tests.crawl.harness import assert_links_are_those_of
from tests.crawl.hostile_routes import answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_polite import fixed, index


@pytest.mark.parametrize(("fetchers", "parsers"), [(1, 0), (1, 1), (2, 1)])
def test_the_links_of_a_crawl_are_those_of_the_web(web, make_crawl, fetchers, parsers):
    crawl = make_crawl(checkpoint_pages=20, checkpoint_seconds=0.1)
    assert crawl.run(url=web.start, scope="any", fetchers=fetchers, parsers=parsers, concurrency=20) == "completed"
    assert_links_are_those_of(web, crawl)


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        sitemap = f"<urlset><url><loc>{running.url('/listed')}</loc></url></urlset>".encode()
        robots = f"User-agent: *\nSitemap: {running.url('/sitemap.xml')}\n".encode()
        running.route("/robots.txt", fixed(answer(robots, content_type="text/plain")))
        running.route("/sitemap.xml", fixed(answer(sitemap, content_type="application/xml")))
        yield running


def test_a_broken_link_names_every_place_it_stands_in(server, make_crawl):
    broken = answer(b"", "404 Not Found")
    server.route("/", fixed(index("/one", "/hidden", "/quiet", "/moved", "/broken", "/broken#here")))
    server.route("/one", fixed(index("/broken")))
    server.route("/hidden", fixed(answer(b'<a href="/broken">x</a>', x_robots_tag="noindex")))
    server.route("/quiet", fixed(answer(b'<a href="/broken">x</a><a href="/secret">x</a>', x_robots_tag="nofollow")))
    server.route("/moved", fixed(answer(b"", "301 Moved", location="/broken")))
    server.route("/broken", fixed(broken))
    server.route("/listed", fixed(broken))
    crawl = make_crawl()
    crawl.run(url=server.url("/"))
    ledger = crawl.ledger()
    names = {url: "/" + url.split("/", 3)[3] for url in ledger}
    failed = [ledger[server.url("/broken")], ledger[server.url("/listed")]]
    links_in = into(crawl.database, crawl.job.id, failed)
    found = {(names[each.url], each.kind, *map(names.get, each.via)) for each in links_in[failed[0].id].sources}
    assert found == {
        ("/", "page"),
        ("/", "page", "/moved"),
        ("/one", "page"),
        ("/hidden", "page"),
        ("/quiet", "page"),
    }
    assert links_in[failed[0].id].count == 5
    (listed,) = links_in[failed[1].id].sources
    assert (names[listed.url], listed.kind) == ("/sitemap.xml", "sitemap")
    quiet = out_of(crawl.database, ledger[server.url("/quiet")])
    assert (quiet.count, quiet.unknown) == (2, 1)
    assert [each.url for each in quiet.urls] == [server.url("/broken")]

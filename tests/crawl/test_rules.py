"""What is followed, what is stored, and what the ledger says about the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from silkline.model.ledger import NewUrl
from silkline.model.url import host_of, url_key
from silkline.store import results, urls
from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_polite import fixed, index

MakeCrawl = Callable[..., Crawl]


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer(addresses=["127.0.0.1", "127.0.0.2"]) as running:
        running.route("/robots.txt", fixed(answer(b"not here", "404 Not Found")))
        yield running


def test_a_redirect_is_a_url_of_its_own_and_the_cache_knows_both(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/", fixed(index("/old")))
    server.route("/old", fixed(answer(b"", "301 Moved", location="/new")))
    server.route("/new", fixed(index("/ok/1")))
    crawl = make_crawl()
    crawl.run(url=server.url("/"))
    ledger = crawl.ledger()
    old, new = ledger[server.url("/old")], ledger[server.url("/new")]
    assert (old.state, old.reason, old.detail, old.http_status) == ("skipped", "redirected", new.url, 301)
    assert (new.state, new.found_via, new.found_on, new.depth) == ("done", "redirect", old.id, old.depth)
    since = datetime(2020, 1, 1, tzinfo=UTC)
    by_old = results.cached(crawl.database, url_key(old.url), since)
    by_new = results.cached(crawl.database, url_key(new.url), since)
    assert by_old is not None
    assert by_old == by_new
    assert (by_old.original_url, by_old.final_url) == (old.url, new.url)
    assert by_old.metadata["redirected_from"] == [old.url]


def test_the_scope_follows_a_seed_that_moved(server: HostileServer, make_crawl: MakeCrawl) -> None:
    there = server.url("/home", "127.0.0.2")
    server.route("/", fixed(answer(b"", "302 Found", location=there)))
    server.route("/home", fixed(index("/ok/1", server.url("/ok/2", "127.0.0.1"))))
    crawl = make_crawl()
    crawl.run(url=server.url("/"), fetchers=2)
    stored = {result.final_url for result in crawl.results()}
    assert stored == {there, server.url("/ok/1", "127.0.0.2"), server.url("/ok/2")}


def test_a_redirect_out_of_scope_is_not_followed(server: HostileServer, make_crawl: MakeCrawl) -> None:
    away = server.url("/ok/1", "127.0.0.2")
    server.route("/", fixed(index("/away")))
    server.route("/away", fixed(answer(b"", "302 Found", location=away)))
    crawl = make_crawl()
    crawl.run(url=server.url("/"))
    assert (crawl.ledger()[away].state, crawl.ledger()[away].reason) == ("skipped", "out_of_scope")
    assert not [asked for asked in server.requests if asked.address == "127.0.0.2"]


def test_what_pages_ask_of_robots(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/", fixed(index("/noindex", "/nofollow", "/header", "/rel")))
    link = b'<a href="/ok/%d">x</a>'
    server.route("/noindex", fixed(answer(b'<meta name="robots" content="noindex">' + link % 1)))
    server.route("/nofollow", fixed(answer(b'<meta name="robots" content="nofollow">' + link % 2)))
    server.route("/header", fixed(answer(link % 3, x_robots_tag="noindex, nofollow")))
    server.route("/rel", fixed(answer(b'<a rel="nofollow" href="/ok/4">x</a>')))
    crawl = make_crawl()
    crawl.run(url=server.url("/"))
    stored = {result.final_url for result in crawl.results()}
    assert stored == {server.url(path) for path in ("/", "/nofollow", "/rel", "/ok/1")}
    ledger = crawl.ledger()
    assert {ledger[server.url(path)].reason for path in ("/noindex", "/header")} == {"noindex"}
    free = make_crawl("free")
    free.run(url=server.url("/"), ignore_robots=True)
    assert free.counts.done == 9


def test_every_link_that_is_not_followed_has_its_reason(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/", fixed(index("/a", "/private/x", server.url("/ok/1", "127.0.0.2"), "mailto:x@example.com")))
    server.route("/a", fixed(index("/b")))
    server.route("/b", fixed(index("/c")))
    crawl = make_crawl()
    crawl.run(url=server.url("/"), depth=2, exclude=["/private/"])
    told = {row.url.split("/", 3)[3]: row.reason for row in crawl.ledger().values()}
    assert told == {"": None, "a": None, "b": None, "c": "too_deep", "private/x": "excluded", "ok/1": "out_of_scope"}
    crawl.assert_books_balance()


@pytest.mark.parametrize("fetchers", [1, 2])
def test_with_a_limit_on_depth_every_page_is_found_by_its_shortest_path(
    server: HostileServer, make_crawl: MakeCrawl, fetchers: int
) -> None:
    """A slow page near the start names a page that a quick detour names too, one click too deep."""

    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        writer.write(index("/goal"))

    server.route("/", fixed(index("/slow", server.url("/detour", "127.0.0.2"))))
    server.route("/slow", slow)
    server.route("/detour", fixed(index(server.url("/further", "127.0.0.2"))))
    server.route("/further", fixed(index(server.url("/goal", "127.0.0.1"))))
    server.route("/goal", fixed(answer()))
    crawl = make_crawl()
    crawl.run(url=server.url("/"), scope="any", depth=2, fetchers=fetchers)
    goal = crawl.ledger()[server.url("/goal")]
    assert (goal.state, goal.depth) == ("done", 2)


def test_what_is_stored_of_a_page(server: HostileServer, make_crawl: MakeCrawl) -> None:
    page = (
        b"<html lang=en><title>Silk</title><meta name=description content='On silk.'>"
        b"<main><h1>Silk</h1><p>Silk is a <a href='/ok/1'>fibre</a>. " + b"It is spun by worms. " * 30 + b"</p></main>"
    )
    server.route("/", fixed(answer(page)))
    crawl = make_crawl()
    crawl.run(url=server.url("/"), content="markdown", limit=1)
    (result,) = crawl.results()
    assert result.data["title"] == "Silk"
    assert result.data["description"] == "On silk."
    assert result.data["language"] == "en"
    assert f"[fibre]({server.url('/ok/1')})" in result.data["markdown"]
    assert result.metadata["http_status"] == 200
    assert result.metadata["content_type"] == "text/html"
    assert result.metadata["bytes"] > 500
    text = make_crawl("text")
    text.run(url=server.url("/"), content="text", limit=1)
    assert "spun by worms" in text.results()[0].data["text"]


def test_a_time_limit_ends_the_crawl_and_says_so(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/", fixed(index("/ok/1", "/ok/2")))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), speed="normal", delay=30, max_duration=1) == "completed"
    assert crawl.counts.queued == 0
    assert {row.reason for row in crawl.ledger().values() if row.state == "skipped"} == {"over_duration"}


def test_temporary_failures_are_tried_again(server: HostileServer, make_crawl: MakeCrawl) -> None:
    tries: list[str] = []

    async def moody(asked: Asked, writer: asyncio.StreamWriter) -> None:
        tries.append(asked.path)
        writer.write(answer() if len(tries) == 3 else answer(b"", "502 Bad Gateway"))

    server.route("/", moody)
    crawl = make_crawl(retry_base=0.05)
    crawl.run(url=server.url("/"))
    (row,) = crawl.ledger().values()
    assert (row.state, row.attempts) == ("done", 3)


def test_a_robots_txt_does_not_lead_to_an_excluded_host(server: HostileServer, make_crawl: MakeCrawl) -> None:
    """The file counts as absent then: whoever redirects it elsewhere forbids nothing."""
    elsewhere = server.url("/robots.txt", "127.0.0.2")
    server.route("/robots.txt", fixed(answer(b"", "302 Found", location=elsewhere)))
    server.route("/", fixed(index()))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), exclude_hosts=["127.0.0.2"]) == "completed"
    assert crawl.counts.done == 1
    assert not [asked for asked in server.requests if asked.address == "127.0.0.2"]


def test_seeds_from_a_file_obey_the_excluded_hosts(server: HostileServer, make_crawl: MakeCrawl) -> None:
    crawl = make_crawl()
    crawl.enqueue(seeded=True, exclude_hosts=[f"127.0.0.2:{server.port}"], fetchers=1)
    seeds = [server.url("/ok/1"), server.url("/ok/2", "127.0.0.2")]
    rows = [NewUrl(id, url_key(url), url, host_of(url), 0) for id, url in enumerate(seeds, 1)]
    urls.seed(crawl.database, crawl.job.id, rows)
    crawl.start()
    assert crawl.finish() == "completed"
    assert [row.reason for row in crawl.ledger().values()] == [None, "excluded"]
    crawl.assert_books_balance()


def test_an_ended_crawl_finds_its_urls_by_key(server: HostileServer, make_crawl: MakeCrawl) -> None:
    crawl = make_crawl()
    crawl.run(url=server.url("/ok/1"))
    page = server.url("/ok/1")
    found = urls.by_key(crawl.database, crawl.job.id, url_key(page), page)
    assert found is not None
    assert found.url == server.url("/ok/1")


def test_pdf_files_and_plain_text_are_pages_too(server: HostileServer, make_crawl: MakeCrawl) -> None:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
        b"<< /Length 44 >> stream\nBT /F 12 Tf 72 700 Td (Silk in a PDF) Tj ET   \nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    pdf, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(pdf))
        pdf += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 6\n0000000000 65535 f \n%btrailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
    pdf += end % (table, len(pdf))
    server.route("/", fixed(index("/a.pdf", "/broken.pdf", "/a.txt")))
    server.route("/a.pdf", fixed(answer(pdf, content_type="application/pdf")))
    server.route("/broken.pdf", fixed(answer(b"%PDF-1.4 nothing", content_type="application/pdf")))
    server.route("/a.txt", fixed(answer("Seide, à la carte".encode(), content_type="text/plain; charset=utf-8")))
    crawl = make_crawl()
    crawl.run(url=server.url("/"), content="markdown")
    data = {result.final_url: result.data for result in crawl.results()}
    assert "Silk in a PDF" in data[server.url("/a.pdf")]["markdown"]
    assert data[server.url("/a.txt")] == {"title": "", "markdown": "Seide, à la carte\n"}
    broken = crawl.ledger()[server.url("/broken.pdf")]
    assert (broken.state, broken.reason) == ("skipped", "parse_failed")

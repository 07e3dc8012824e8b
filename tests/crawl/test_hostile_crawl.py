"""One web that misbehaves in every way: each URL gets its reason, the crawl goes on and ends, memory stays flat."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from tests.crawl.harness import Crawl
from tests.crawl.hostile_routes import Asked, Route, answer
from tests.crawl.hostile_server import HostileServer
from tests.crawl.test_polite import fixed, index

MakeCrawl = Callable[..., Crawl]
GOOD = [f"/ok/{number}" for number in range(20)]
FAILURES = {
    "/bomb/gzip?mib=30": "body_too_large",
    "/bomb/br?mib=30": "body_too_large",
    "/bomb/zstd?mib=30": "body_too_large",
    "/bomb/gzip,gzip?mib=30": "body_too_large",
    "/members": "bad_encoding",
    "/endless": "body_too_large",
    "/endless?chunked=1": "body_too_large",
    "/promised/999999999": "body_too_large",
    "/hang": "timeout",
    "/hang-in-headers": "timeout",
    "/hang-in-body": "timeout",
    "/drip": "timeout",
    "/huge-headers/many": "headers_too_large",
    "/huge-headers/one": "headers_too_large",
    "/lengths/differ": "bad_response",
    "/truncated/length": "truncated",
    "/truncated/chunked": "truncated",
    "/truncated/gzip": "bad_encoding",
    "/reset/before": "reset",
    "/reset/during": "reset",
    "/silence": "reset",
    "/garbage": "bad_response",
    "/bad-chunks": "bad_response",
    "/status/404": "http_404",
    "/status/500": "http_500",
    "/status/410": "http_410",
    "/redirect-nowhere": "bad_redirect",
    f"/redirect?to={quote('http://' + 'a' * 6000 + '.example/')}": "bad_redirect",
    f"/redirect?to={quote('ftp://127.0.0.1/x')}": "scheme_blocked",
    f"/redirect?to={quote('javascript:alert(1)')}": "scheme_blocked",
}
QUICK = {
    "tries": 2,
    "retry_base": 0.05,
    "total_timeout": 16.0,
    "idle_timeout": 12.0,
    "connect_timeout": 12.0,
    "give_up_after": 1000,
}


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer(addresses=[f"127.0.0.{number}" for number in range(1, 8)]) as running:
        running.route("/robots.txt", fixed(answer(b"not here", "404 Not Found")))
        yield running


def test_each_misbehaviour_has_its_reason_and_the_crawl_goes_on(server: HostileServer, make_crawl: MakeCrawl) -> None:
    private = f"/redirect?to={quote('http://10.1.2.3/secret')}"
    odd = ["/loop/a", "/chain/15", private, "/encoded/gzip,br", "/informational/3"]
    server.route("/", fixed(index(*FAILURES, *odd, *GOOD)))
    crawl = make_crawl(**QUICK)
    assert crawl.run(url=server.url("/"), scope="any", fetchers=1) == "completed"
    ledger = crawl.ledger()
    told = {path: ledger[server.url(path)] for path in FAILURES}
    assert {path: (row.state, row.reason) for path, row in told.items()} == {
        path: ("failed", reason) for path, reason in FAILURES.items()
    }
    assert told["/hang"].attempts == 2, "what may pass is tried again"
    assert told["/status/404"].attempts == 1, "what will not pass is not"
    assert ledger[server.url("/loop/b")].reason == "redirect_loop"
    assert [row.reason for row in ledger.values() if "/chain/" in row.url].count("too_many_redirects") == 1
    secret = ledger["http://10.1.2.3/secret"]
    assert (secret.state, secret.reason, secret.found_via) == ("failed", "address_blocked", "foreign")
    stored = {result.final_url for result in crawl.results()}
    assert {server.url(path) for path in (*GOOD, "/encoded/gzip,br", "/informational/3")} <= stored
    crawl.assert_books_balance()
    assert crawl.grown < 100


def test_a_name_that_comes_to_stand_for_another_address_is_judged_again(
    server: HostileServer, make_crawl: MakeCrawl
) -> None:
    """DNS rebinding: an address that may be asked at first, then one inside.

    It is looked up ahead, for the limit per address, for robots.txt and for the index; after that it has changed.
    """
    once = answer(b'<a href="/ok/1">x</a><a href="/ok/2">x</a>' + f'<a href="{server.url("/ok/3")}">x</a>'.encode())
    server.route("/", fixed(once.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)))
    crawl = make_crawl(**QUICK)
    crawl.names = {"rebind.test": [*[["127.0.0.2"]] * 4, ["127.0.0.1"]]}
    allowed = [f"127.0.0.2:{server.port}"]
    start = server.url("/", "rebind.test")
    assert crawl.run(url=start, scope="any", fetchers=1, allow_private=allowed) == "completed"
    ledger = crawl.ledger()
    assert ledger[start].state == "done"
    turned = [ledger[server.url(path, "rebind.test")] for path in ("/ok/1", "/ok/2")]
    assert [(row.state, row.reason) for row in turned] == [("failed", "address_blocked")] * 2
    assert {asked.address for asked in server.requests} == {"127.0.0.2"}
    crawl.assert_books_balance()


def test_a_calendar_without_an_end_is_left_after_its_budget(server: HostileServer, make_crawl: MakeCrawl) -> None:
    async def calendar(asked: Asked, writer: asyncio.StreamWriter) -> None:
        *_, year, month = asked.path.split("/")
        links = [f"/calendar/{int(year) + step}/{int(month) % 12 + 1}" for step in range(3)]
        writer.write(index(*links))

    server.route("/calendar", calendar)
    server.route("/", fixed(index("/calendar/2000/1", server.url("/good", "127.0.0.2"))))
    server.route("/good", fixed(index(*(server.url(path, "127.0.0.2") for path in GOOD))))
    crawl = make_crawl(template_budget=50)
    assert crawl.run(url=server.url("/"), scope="any", fetchers=1) == "completed"
    rows = crawl.ledger().values()
    trapped = [row for row in rows if row.reason == "trap"]
    assert trapped
    assert all("/calendar/#/#" in (row.detail or "") for row in trapped)
    assert sum(row.state == "done" for row in rows if "/calendar/" in row.url) <= 300 + 50 + 3
    assert {server.url(path, "127.0.0.2") for path in GOOD} <= {result.final_url for result in crawl.results()}


def test_a_path_that_repeats_itself(server: HostileServer, make_crawl: MakeCrawl) -> None:
    server.route("/again", fixed(index("again/", "/ok/1")))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/again/")) == "completed"
    assert any(row.reason == "trap" for row in crawl.ledger().values())
    assert crawl.counts.done < 20


def test_a_host_that_refuses_for_an_hour_does_not_hold_up_the_others(
    server: HostileServer, make_crawl: MakeCrawl
) -> None:
    async def busy(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.address == "127.0.0.2":
            writer.write(answer(b"", "429 Too Many Requests", retry_after="3600"))
        else:
            writer.write(answer())

    server.route("/ok", busy)
    seeds = [server.url(path, host) for path in GOOD for host in ("127.0.0.1", "127.0.0.2")]
    crawl = make_crawl(longest_wait=1.0, retry_base=0.05)
    assert crawl.run(urls=seeds, fetchers=1) == "completed"
    ledger = crawl.ledger()
    assert all(ledger[server.url(path)].state == "done" for path in GOOD)
    reasons = {ledger[server.url(path, "127.0.0.2")].reason for path in GOOD}
    assert reasons <= {"http_429", "host_unavailable"}
    asked = [asked for asked in server.requests if asked.address == "127.0.0.2" and asked.path.startswith("/ok")]
    assert len(asked) < 80, "it was asked again and again"


def test_one_answer_that_asks_for_an_hour_ends_no_crawl(server: HostileServer, make_crawl: MakeCrawl) -> None:
    """With the times that a crawl has by default; all else is done first, and the host is not asked before its time."""

    async def busy_once(asked: Asked, writer: asyncio.StreamWriter) -> None:
        refused = asked.address == "127.0.0.2" and asked.path == "/ok/0"
        writer.write(answer(b"", "503 Service Unavailable", retry_after="3600") if refused else answer())

    server.route("/ok", busy_once)
    others = [server.url(path) for path in GOOD]
    late = [server.url(path, "127.0.0.2") for path in GOOD]
    crawl = make_crawl()
    assert crawl.run(urls=[*late, *others], speed="polite", delay=0) == "completed"
    ledger = crawl.ledger()
    assert {ledger[url].state for url in others} == {"done"}
    left = [ledger[url] for url in late]
    assert {row.reason for row in left} == {"host_unavailable"}
    assert (left[-1].detail or "").startswith("http_503 asks for 3")
    asked = [asked.path for asked in server.requests if asked.address == "127.0.0.2"]
    assert asked == ["/robots.txt", "/ok/0"]


def test_a_robots_txt_that_asks_for_an_hour_ends_no_crawl(server: HostileServer, make_crawl: MakeCrawl) -> None:
    async def robots(asked: Asked, writer: asyncio.StreamWriter) -> None:
        tired = asked.address == "127.0.0.2"
        writer.write(answer(b"", "503 No", retry_after="3600") if tired else answer(b"", "404 Not Found"))

    server.route("/robots.txt", robots)
    crawl = make_crawl()
    assert crawl.run(urls=[server.url("/ok/1"), server.url("/ok/1", "127.0.0.2")]) == "completed"
    ledger = crawl.ledger()
    assert ledger[server.url("/ok/1")].state == "done"
    assert ledger[server.url("/ok/1", "127.0.0.2")].reason == "host_unavailable"
    assert [asked.path for asked in server.requests if asked.address == "127.0.0.2"] == ["/robots.txt"]


@pytest.mark.parametrize("delay", [0.0, 0.05])
@pytest.mark.parametrize("endless", ["/robots.txt", "/"])
def test_many_hosts_that_never_answer_leave_slots_for_one_that_does(
    server: HostileServer, make_crawl: MakeCrawl, endless: str, delay: float
) -> None:
    """Their robots.txt, or their pages, arrive only when all pages of the good host were asked for."""
    names = [f"host{number}.test" for number in range(12)]
    asked_for: set[str] = set()
    all_asked_for = asyncio.Event()

    def held(response: bytes) -> Route:
        async def route(asked: Asked, writer: asyncio.StreamWriter) -> None:
            if asked.address != "127.0.0.1" and asked.path == endless:
                await all_asked_for.wait()
            writer.write(response)

        return route

    async def good(asked: Asked, writer: asyncio.StreamWriter) -> None:
        asked_for.add(asked.path)
        if len(asked_for) == len(GOOD):
            all_asked_for.set()
        writer.write(answer(b"<p>words of " + asked.path.encode()))

    links = [*(server.url("/", name) for name in names), *(server.url(path) for path in GOOD)]
    server.route("/robots.txt", held(answer(b"not here", "404 Not Found")))
    server.route("/", held(index(*links)))
    for path in GOOD:
        server.route(path, good)
    crawl = make_crawl(**QUICK, robots_tries=1)
    crawl.names = {name: [[f"127.0.0.{2 + number % 6}"]] for number, name in enumerate(names)}
    options = {"scope": "any", "fetchers": 1, "concurrency": 8, "delay": delay, "allow_private": ["127.0.0.0/8"]}
    assert crawl.run(url=server.url("/"), **options) == "completed"
    assert {row.state for row in crawl.ledger().values()} == {"done"}
    assert max(row.attempts for row in crawl.ledger().values()) == 1


def slow_pdf() -> bytes:
    """20 KB that become 19 MB, and take longer to read than a PDF may."""
    content = zlib.compress(b"BT\n" + b"1 0 Td\n" * 60_000 + b"(x) Tj ET\n", 9)
    kids = b" ".join(b"%d 0 R" % number for number in range(5, 505))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 500/Kids[%b]>>" % kids,
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(content), content),
        b"<</Length %d>>stream\n%b\nendstream" % (19_000_000, bytes(19_000_000)),
        *[b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</Font<<>>>>/Contents 3 0 R>>"] * 500,
    ]
    pdf, places = bytearray(b"%PDF-1.4\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(pdf))
        pdf += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 %d\n0000000000 65535 f \n%btrailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    return bytes(pdf) + end % (len(objects) + 1, table, len(objects) + 1, len(pdf))


def test_hosts_with_slow_pdfs_do_not_stop_the_others(server: HostileServer, make_crawl: MakeCrawl) -> None:
    """The first page of the good host arrives when all PDFs were asked for. They are more than may wait to be read."""
    pdfs = [f"/{number}.pdf" for number in range(2, 8)]
    asked: list[str] = []
    all_asked_for = asyncio.Event()
    body = gzip.compress(slow_pdf(), 9)
    encoded = answer(body, content_type="application/pdf", content_encoding="gzip")
    assert len(body) < 50_000

    async def pdf(request: Asked, writer: asyncio.StreamWriter) -> None:
        asked.append(request.path)
        if len(asked) == len(pdfs):
            all_asked_for.set()
        writer.write(encoded)

    async def good(request: Asked, writer: asyncio.StreamWriter) -> None:
        await all_asked_for.wait()
        asked.append(request.path)
        number = int(request.path.rpartition("/")[2])
        writer.write(index(*GOOD[number + 1 : number + 2]))

    hosts = [server.url(path, f"127.0.0.{number}") for number, path in enumerate(pdfs, 2)]
    server.route("/", fixed(index(GOOD[0], *hosts)))
    for path in GOOD:
        server.route(path, good)
    for path in pdfs:
        server.route(path, pdf)
    crawl = make_crawl(**QUICK, read_seconds=2.0)
    options = {"scope": "any", "fetchers": 1, "concurrency": 8, "content": "markdown"}
    assert crawl.run(url=server.url("/"), **options) == "completed"
    assert {row.state for row in crawl.ledger().values()} == {"done"}, "nothing is lost"
    assert Counter(asked)[GOOD[0]] == 1
    again = next(place for place, path in enumerate(asked) if path in asked[:place])
    assert asked[again] in pdfs, "some had no room, and were fetched again"
    assert set(GOOD) <= set(asked[:again])


def test_robots_that_fail_in_each_way(server: HostileServer, make_crawl: MakeCrawl) -> None:
    async def robots(asked: Asked, writer: asyncio.StreamWriter) -> None:
        match asked.address:
            case "127.0.0.2":
                writer.write(answer(b"", "500 Broken"))
            case "127.0.0.3":
                await asked.gone()
            case "127.0.0.4":
                writer.write(answer(b"", "301 Moved", location="/robots.txt"))
            case "127.0.0.5":
                writer.write(answer(b"\xff\xfe\x00garbage\x00" * 1000, content_type="text/plain"))
            case "127.0.0.6":
                writer.write(answer(b"", "403 Forbidden"))
            case _:
                writer.close()

    server.route("/robots.txt", robots)
    hosts = [f"127.0.0.{number}" for number in range(2, 8)]
    crawl = make_crawl(retry_base=0.05, total_timeout=7.0, idle_timeout=7.0)
    assert crawl.run(urls=[server.url("/ok/1", host) for host in hosts], fetchers=1) == "completed"
    ledger = crawl.ledger()
    ends = [(ledger[server.url("/ok/1", host)].state, ledger[server.url("/ok/1", host)].reason) for host in hosts]
    assert ends == [
        ("skipped", "robots_unavailable"),
        ("failed", "timeout"),
        ("done", None),
        ("done", None),
        ("done", None),
        ("failed", "reset"),
    ]
    for host in hosts[:2]:
        asked = [asked.path for asked in server.requests if asked.address == host]
        assert asked == ["/robots.txt"] * 3, "tried again a few times, and nothing else asked for"


def test_sitemaps_that_name_each_other(server: HostileServer, make_crawl: MakeCrawl) -> None:
    def sitemaps(*names: str) -> bytes:
        body = "".join(f"<sitemap><loc>{server.url(name)}</loc></sitemap>" for name in names)
        return answer(f"<sitemapindex>{body}</sitemapindex>".encode(), content_type="text/xml")

    pages = "".join(f"<url><loc>{server.url(path)}</loc></url>" for path in GOOD)
    rules = f"User-agent: *\nSitemap: {server.url('/a.xml')}\n".encode()
    server.route("/robots.txt", fixed(answer(rules, content_type="text/plain")))
    server.route("/", fixed(index()))
    server.route("/a.xml", fixed(sitemaps("/b.xml", "/a.xml", "/c.xml")))
    server.route("/b.xml", fixed(sitemaps("/a.xml", "/b.xml")))
    server.route("/c.xml", fixed(answer(f"<urlset>{pages}</urlset>".encode(), content_type="text/xml")))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/")) == "completed"
    assert {result.final_url for result in crawl.results()} == {server.url(path) for path in ("/", *GOOD)}
    read = [row for row in crawl.ledger().values() if row.reason == "sitemap"]
    assert sorted(row.url for row in read) == [server.url(name) for name in ("/a.xml", "/b.xml", "/c.xml")]
    assert all(server.paths().count(name) == 1 for name in ("/a.xml", "/b.xml", "/c.xml"))


def test_a_parser_survives_what_pages_do_to_it(server: HostileServer, make_crawl: MakeCrawl) -> None:
    pages = {
        "/nested": b"<div>" * 100_000,
        "/links": b'<a href="/ok/1">' * 200_000,
        "/attribute": b'<p title="' + b"x" * 5_000_000 + b'">',
        "/nul": b"<title>words</title>" + b"<p>words</p>" * 100 + b"<h1>a\x00b</h1><p>\x00\xed\xa0\x80</p>",
        "/png": b"\x89PNG\r\n\x1a\n" + bytes(1000),
        "/empty": b"",
    }
    for path, body in pages.items():
        server.route(path, fixed(answer(body)))
    server.route("/", fixed(index(*pages, *GOOD)))
    crawl = make_crawl()
    assert crawl.run(url=server.url("/"), parsers=1, content="markdown") == "completed"
    ledger = crawl.ledger()
    assert all(ledger[server.url(path)].state == "done" for path in ("/nested", "/links", "/attribute", "/nul", *GOOD))
    assert ledger[server.url("/png")].reason == "not_a_page"
    assert "\x00" not in "".join(str(result.data) for result in crawl.results())
    crawl.assert_books_balance()

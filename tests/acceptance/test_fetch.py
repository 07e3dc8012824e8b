"""`silkline URL`: a page as Markdown, with its reasons, its options and its cache, on the sample site."""

import json
import signal
import threading
from collections.abc import Iterator

import pytest

from silkline.model.database import Database
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, urls
from tests.acceptance.conftest import PATIENCE, Silkline

HTML = "text/html; charset=utf-8"
PROSE = b"<h1>Landed</h1><p>" + b"Some words that make this a page worth keeping. " * 8 + b"</p>"


def serving(status: int, body: bytes = PROSE, location: str = "") -> SampleServer:
    """A server with one answer to everything but robots.txt, which it does not have."""

    def respond(target: str, origin: str) -> SampleAnswer:
        return SampleAnswer(404, HTML, b"") if target == "/robots.txt" else SampleAnswer(status, HTML, body, location)

    return SampleServer(respond=respond)


@pytest.fixture
def site() -> Iterator[SampleServer]:
    with SampleServer() as server:
        yield server


def asked_for(server: SampleServer) -> list[str]:
    return [path for path in server.requests if path != "/robots.txt"]


def test_a_url_is_enough(silkline: Silkline, site: SampleServer) -> None:
    shown = silkline(site.url)
    assert shown.code == 0, shown
    assert shown.out.startswith("# Tern Rock Light\n")
    assert f"[who we are]({site.url}about/)" in shown.out
    assert f"![The lamp of Tern Rock, seen from below]({site.url}lamp.png)" in shown.out
    assert shown.err == ""
    assert silkline("fetch", site.url.removeprefix("http://")).out == shown.out


def test_tables_code_and_base(silkline: Silkline, site: SampleServer) -> None:
    code = silkline(f"{site.url}light/signal").out
    assert "```python\nPERIOD = 15.0\n" in code
    assert "    return any(start <= phase < start + length for start, length in FLASHES)\n```" in code
    assert "| Thomas Rook" in silkline(f"{site.url}about/keepers").out
    assert f"[puffin]({site.url}birds/puffin)" in silkline(f"{site.url}birds/arctic-tern").out


def test_a_pdf_and_plain_text_become_markdown(silkline: Silkline, site: SampleServer) -> None:
    pdf = silkline(f"{site.url}handbook.pdf", "--json").json
    assert pdf["data"]["title"] == "Visitor's handbook of Tern Rock"
    assert pdf["data"]["pages"] == 2
    assert "what to leave alone, and what to do if you miss the last boat." in pdf["data"]["markdown"]
    assert silkline(f"{site.url}robots.txt").out.startswith("User-agent: *\nDisallow: /private/\n")


@pytest.mark.parametrize(
    ("path", "reason", "words"),
    [
        ("lamp.png", "not_text", "there is no text in it (an image, image/png)"),
        ("nowhere", "http_404", "the server answered 404 Not Found"),
        ("shop", "http_410", "410 Gone"),
        ("loop/one", "redirect_loop", "it redirects in a circle"),
        ("private/accounts", "robots", "robots.txt does not allow it; --ignore-robots fetches it anyway"),
    ],
)
def test_why_there_is_no_page(silkline: Silkline, site: SampleServer, path: str, reason: str, words: str) -> None:
    silkline(site.url + path).refused(1, words)
    told = silkline(site.url + path, "--json")
    assert (told.code, told.json["success"], told.json["metadata"]["error"]) == (1, False, reason)


def test_robots_can_be_ignored(silkline: Silkline, site: SampleServer) -> None:
    assert "for members" in silkline(f"{site.url}private/accounts", "--ignore-robots").out
    assert "/robots.txt" not in site.requests


def test_urls_from_stdin(silkline: Silkline, site: SampleServer) -> None:
    lines = f"# a list\n{site.url}birds/puffin\n\n{site.url}nowhere\n{site.url}birds/eider\n"
    shown = silkline("fetch", "-", "--speed", "max", input=lines)
    assert shown.code == 0, shown
    assert shown.out.index("# Puffin") < shown.out.index("# Eider")
    assert f"<!-- {site.url}birds/eider -->" in shown.out
    assert shown.err.count("\n") == 1
    rows = silkline("fetch", "-", "--speed", "max", "--json", input=lines).out.splitlines()
    assert [json.loads(row)["success"] for row in rows] == [True, False, True]
    assert silkline("fetch", "-").refused(2, "no URL was given") is None


def test_what_was_fetched_is_a_completed_job(silkline: Silkline, site: SampleServer, store: Database) -> None:
    silkline("fetch", f"{site.url}birds/puffin", f"{site.url}nowhere", "--speed", "max")
    job = jobs.find(store, "last")
    counts = urls.counts(store, job.id)
    assert (job.status, job.kind, job.exit_reason) == ("completed", "page", "completed")
    assert (counts.discovered, counts.done, counts.failed, counts.queued) == (2, 1, 1, 0)
    assert urls.reasons(store, job.id) == [("failed", "http_404", 1)]


def test_headers_reach_their_own_origin_only(silkline: Silkline) -> None:
    options = ("--header", "X-Secret: hush", "--user-agent", "Tester/1", "--allow-private", "127.0.0.0/8")
    with serving(200) as other, serving(302, b"", other.url) as one:
        assert silkline(one.url, *options).code == 0
        assert one.headers[-1]["X-Secret"] == "hush"
        assert "X-Secret" not in other.headers[-1]
        assert other.headers[-1]["User-Agent"] == "Tester/1"


def test_only_the_typed_address_is_allowed(silkline: Silkline, site: SampleServer) -> None:
    with serving(302, b"", site.url) as one:
        silkline(one.url).refused(1, "its address is private", "--allow-private")
        assert site.requests == []
        assert silkline(one.url, "--allow-private", "127.0.0.1").code == 0


def test_a_page_is_taken_from_the_cache_by_either_of_its_urls(silkline: Silkline) -> None:
    anywhere = ("--allow-private", "127.0.0.0/8")
    with serving(200) as landed, serving(301, b"", f"{landed.url}x") as asked:
        first = silkline(asked.url, *anywhere)
        assert "# Landed" in first.out, first
        assert (asked_for(asked), asked_for(landed)) == (["/"], ["/x"])
        before = (list(asked.requests), list(landed.requests))
        for url in (asked.url, f"{landed.url}x", f"{asked.url}#part"):
            again = silkline(url, "--max-age", "1h", *anywhere)
            assert (again.code, again.out) == (0, first.out)
        assert (asked.requests, landed.requests) == before, "a page from the cache makes no request"
        assert silkline(asked.url, "--max-age", "0", *anywhere).out == first.out
        assert asked_for(asked) == ["/", "/"], "an old page is fetched again"


def test_the_cache_serves_only_what_was_asked_for(silkline: Silkline, site: SampleServer) -> None:
    page = f"{site.url}birds/puffin"
    silkline(page, "--content", "text")
    silkline(page, "--max-age", "1h")
    assert asked_for(site) == ["/birds/puffin"] * 2, "text is no Markdown"
    silkline(page, "--header", "Cookie: me=1")
    silkline(page, "--max-age", "1h", "--header", "Cookie: me=1")
    assert asked_for(site) == ["/birds/puffin"] * 4, "what has somebody's own headers is not shared"
    silkline(page, "--max-age", "1h")
    assert asked_for(site) == ["/birds/puffin"] * 4


def test_a_page_of_control_characters_is_harmless_on_a_terminal(silkline: Silkline) -> None:
    from tests.acceptance.test_output import on_terminal

    body = "<h1>Title</h1><p>" + "And a long enough paragraph. " * 30 + "\x1b]0;owned\x07\x1b[2Jevil</p>"
    with serving(200, body.encode()) as site:
        shown = on_terminal(silkline, site.url)
    assert "evil" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fetch", "https://example.com/", "--max-age", "soon"), "is not a duration"),
        (("fetch", "https://example.com/", "--header", "nonsense"), "is not a header"),
        (("fetch", "ftp://example.com/"), "only http:// and https:// are fetched"),
        (("fetch", "https://example.com/", "--allow-private", "x"), "expected CIDR[:PORT]"),
    ],
)
def test_what_cannot_be_meant_is_refused(silkline: Silkline, arguments: tuple[str, ...], words: str) -> None:
    silkline(*arguments).refused(2, words)


def test_ctrl_c_cancels_the_job(silkline: Silkline, store: Database) -> None:
    asked, gate = threading.Event(), threading.Event()

    def respond(target: str, origin: str) -> SampleAnswer:
        asked.set()
        gate.wait(PATIENCE)
        return SampleAnswer(404, HTML, b"")

    with SampleServer(respond=respond) as site:
        process = silkline.start(site.url)
        assert asked.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        gate.set()
    assert (out, err, process.returncode) == (b"", b"", 130)
    assert jobs.find(store, "last").status == "cancelled"


def test_a_crawl_fills_the_cache_unless_it_was_somebodys_own(silkline: Silkline, site: SampleServer) -> None:
    quick = ("--speed", "max", "--limit", "5")
    assert silkline("crawl", site.url, *quick, "--header", "Cookie: me=1").code == 0
    silkline(site.url, "--max-age", "1h")
    assert asked_for(site).count("/") == 2
    assert silkline("crawl", site.url, *quick).code == 0
    silkline(site.url, "--max-age", "1h")
    assert asked_for(site).count("/") == 3


@pytest.mark.usefixtures("chromium")
def test_a_page_made_by_a_script(silkline: Silkline, site: SampleServer) -> None:
    assert "# Gallery" not in silkline(f"{site.url}gallery").out
    shown = silkline(f"{site.url}gallery", "--render", "auto")
    assert shown.code == 0, shown
    assert f"# Gallery\n\n![]({site.url}storm.png)\n\nSpray over the lantern" in shown.out
    assert silkline(f"{site.url}gallery", "--render", "sometimes").code == 2

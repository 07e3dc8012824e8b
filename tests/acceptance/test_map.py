"""`silkline map`: the URLs of a site from its sitemaps, whatever those look like, or from its links."""

import gzip
import json
import signal
import threading
from collections.abc import Callable

import pytest

from silkline.model.database import Database
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, urls
from tests.acceptance.conftest import PATIENCE, Silkline

XML = "application/xml"


def index(*locs: str) -> bytes:
    return b"<sitemapindex>%s</sitemapindex>" % "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs).encode()


def urlset(*locs: str) -> bytes:
    return b"<urlset>%s</urlset>" % "".join(f"<url><loc>{loc}</loc></url>" for loc in locs).encode()


def serving(pages: Callable[[str], dict[str, bytes]]) -> SampleServer:
    def respond(target: str, origin: str) -> SampleAnswer:
        body = pages(origin).get(target)
        return SampleAnswer(404, XML, b"") if body is None else SampleAnswer(200, XML, body)

    return SampleServer(respond=respond)


def test_a_site_is_mapped_from_its_sitemaps(silkline: Silkline) -> None:
    with SampleServer() as site:
        shown = silkline("map", site.url, "--speed", "max")
        assert (shown.code, shown.err) == (0, "")
        listed = shown.out.splitlines()
        assert len(listed) == len(set(listed)) == 25
        assert f"{site.url}journal/the-other-island" in listed
        assert sorted(site.requests) == ["/robots.txt", "/sitemap-journal.xml.gz", "/sitemap-pages.xml", "/sitemap.xml"]
        rows = silkline("map", site.url, "--json", "--limit", "3", "--speed", "max").out.splitlines()
        assert [json.loads(row)["lastmod"] for row in rows] == ["2026-11-03"] * 3


def test_links_are_followed_if_asked(silkline: Silkline) -> None:
    with SampleServer() as site:
        shown = silkline("map", site.url, "--links", "--speed", "max")
        listed = set(shown.out.splitlines())
    assert shown.code == 0, shown
    assert {f"{site.url}{path}" for path in ("about/", "calendar/", "handbook.pdf", "private/accounts")} <= listed
    assert not {f"{site.url}{path}" for path in ("shop", "old-home", "sitemap.xml", "lost/lobster-pots")} & listed


def test_cycles_nesting_strangers_and_gzip(silkline: Silkline, store: Database) -> None:
    def pages(origin: str) -> dict[str, bytes]:
        return {
            "/robots.txt": f"Sitemap: {origin}/a.xml\nSitemap: /b.xml".encode(),
            "/a.xml": index(f"{origin}/a.xml", f"{origin}/b.xml", f"{origin}/c.xml.gz", f"{origin}/broken.xml"),
            "/b.xml": index(f"{origin}/a.xml"),
            "/c.xml.gz": gzip.compress(
                urlset(f"{origin}/1", f"{origin}/2", f"{origin}/1", "https://elsewhere.example/")
            ),
            "/broken.xml": f"<urlset><url><loc>{origin}/3</loc></url><url><loc>{origin}/4".encode(),
        }

    with serving(pages) as site:
        shown = silkline("map", site.url, "--speed", "max")
        assert sorted(shown.out.splitlines()) == [f"{site.url}{number}" for number in (1, 2, 3)]
        assert sorted(site.requests) == ["/a.xml", "/b.xml", "/broken.xml", "/c.xml.gz", "/robots.txt"]
    job = jobs.find(store, "last")
    counted = {reason: number for _, reason, number in urls.reasons(store, job.id)}
    assert counted == {"sitemap": 4, "out_of_scope": 1}


@pytest.mark.parametrize("path", ["/sitemap.xml", "/sitemap_index.xml"])
def test_sitemaps_are_found_where_sites_keep_them(silkline: Silkline, path: str) -> None:
    with serving(lambda origin: {path: urlset(f"{origin}/1")}) as site:
        assert silkline("map", site.url, "--speed", "max").out == f"{site.url}1\n"


def test_a_sitemap_can_be_named(silkline: Silkline) -> None:
    with serving(lambda origin: {"/deep/list.txt": f"{origin}/1\n{origin}/2\n".encode()}) as site:
        assert silkline("map", f"{site.url}deep/list.txt", "--speed", "max").out == f"{site.url}1\n{site.url}2\n"


def test_nothing_to_map(silkline: Silkline) -> None:
    with serving(lambda origin: {}) as site:
        shown = silkline("map", site.url, "--speed", "max")
    assert (shown.code, shown.out) == (1, "")
    assert "use --links to follow links" in shown.err


class Slow:
    """A site of a hundred pages, each linked from the first; those after the tenth wait for the gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.server = SampleServer(respond=self.respond)

    def respond(self, target: str, origin: str) -> SampleAnswer:
        if target == "/":
            links = "".join(f"<a href='/{number}'>{number}</a> " for number in range(100))
            return SampleAnswer(200, "text/html", f"<h1>Start</h1>{links}".encode())
        name = target.strip("/")
        if not name.isdigit():
            return SampleAnswer(404, "text/html", b"")
        if int(name) >= 10:
            self.gate.wait(PATIENCE)
        return SampleAnswer(200, "text/html", b"<h1>Page</h1><p>Words</p>")

    def __enter__(self) -> "Slow":
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self.server.close()


LINKS = ("--links", "--speed", "max")


def test_urls_are_printed_while_the_search_goes_on(silkline: Silkline) -> None:
    with Slow() as site:
        process = silkline.start("map", site.server.url, *LINKS)
        assert process.stdout is not None
        first = [process.stdout.readline().decode().strip() for _ in range(11)]
        assert process.poll() is None, "it was not over when they were printed"
        assert set(first) == {site.server.url, *(f"{site.server.url}{number}" for number in range(10))}
        site.gate.set()
        rest, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert len(rest.splitlines()) == 101 - 11


def test_the_search_ends_at_the_limit(silkline: Silkline) -> None:
    with Slow() as site:
        shown = silkline("map", site.server.url, *LINKS, "--limit", "5")
        assert shown.code == 0, shown
        assert len(shown.out.splitlines()) == 5
    job = silkline("jobs", "show", "last", "--json").json
    assert job["status"] == "completed"
    assert (job["progress"]["queued"], job["progress"]["in_flight"]) == (0, 0)


def test_an_interrupted_search_keeps_what_it_found(silkline: Silkline) -> None:
    with Slow() as site:
        process = silkline.start("map", site.server.url, *LINKS)
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(11)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err
        assert b"11 URLs were found and kept" in err, err
        assert out == b""
    job = silkline("jobs", "show", "last", "--json").json
    assert job["progress"]["done"] == len(first) == 11
    assert silkline("urls", "last", "--state", "done").out.count("\n") == 11


def test_a_reader_that_leaves_ends_the_search(silkline: Silkline) -> None:
    with Slow() as site:
        process = silkline.start("map", site.server.url, *LINKS)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        site.gate.set()
        assert process.wait(PATIENCE) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""

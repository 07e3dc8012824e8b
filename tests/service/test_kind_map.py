"""Maps that are limited, interrupted and misled."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.crawl.plan import Tuning
from silkline.kinds import map as mapping
from silkline.model.job import NewJob, Status, Verb
from silkline.model.ledger import Checkpoint
from silkline.runner.inline import Watcher, run_here
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, results, urls
from tests.support.inline import Inline
from tests.support.supervisors import Yard

XML = "application/xml"
EACH = 40


def listing(kind: str, tag: str, locs: list[str]) -> SampleAnswer:
    return SampleAnswer(
        200, XML, f"<{kind}>{''.join(f'<{tag}><loc>{loc}</loc></{tag}>' for loc in locs)}</{kind}>".encode()
    )


class Maps:
    """An index of four sitemaps with 40 pages each; the last waits for the gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.reached = threading.Event()
        self.server = SampleServer(respond=self._respond)

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        if target == "/sitemap.xml":
            return listing("sitemapindex", "sitemap", [f"{origin}/map/{number}.xml" for number in range(4)])
        if target.startswith("/map/"):
            number = int(target[5:-4])
            if number == 3:
                self.reached.set()
                self.gate.wait(120)
            return listing("urlset", "url", [f"{origin}/{number}/{page}" for page in range(EACH)])
        return SampleAnswer(404, XML, b"")


@pytest.fixture
def maps() -> Iterator[Maps]:
    maps = Maps()
    with maps.server:
        yield maps
        maps.gate.set()


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    inline = Inline(tmp_path)
    yield inline
    inline.close()


def payload(maps: Maps, **more: object) -> dict[str, object]:
    return {"url": maps.server.url, "speed": "max", "allow_private": ["127.0.0.0/8"], **more}


def test_a_limit_holds_and_the_rest_is_accounted_for(maps: Maps, inline: Inline) -> None:
    maps.gate.set()
    found = inline.run("map", **payload(maps, limit=50))
    assert len(found) == 50
    assert inline.job.status == "completed"
    tally, counts = urls.tally(inline.database, inline.job.id), urls.counts(inline.database, inline.job.id)
    assert (tally["done"], tally["queued"], tally["failed"]) == (50, 0, 0)
    assert counts.discovered == sum(tally.values())


def test_a_map_that_was_paused_goes_on(yard: Yard, maps: Maps) -> None:
    (id,) = jobs.enqueue_many(yard.database, [NewJob("map", payload(maps), max_retries=5)])
    yard.start(fence_after=60.0, stale_after=90.0)
    assert maps.reached.wait(120)
    yard.wait_for_results(id, EACH)
    jobs.wish(yard.database, id, Verb.PAUSE)
    yard.wait_for(id, Status.PAUSED)
    maps.gate.set()
    jobs.wish(yard.database, id, Verb.RESUME)
    yard.wait_for(id, Status.COMPLETED)
    found = [result.final_url for result in results.every(yard.database, id)]
    assert len(found) == len(set(found)) == 4 * EACH
    assert yard.adds_up(id)


def test_sitemaps_without_end_come_to_one(inline: Inline) -> None:
    """Each index names the next one."""

    def respond(target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            return SampleAnswer(404, XML, b"")
        number = int("".join(filter(str.isdigit, target)) or 0)
        return listing("sitemapindex", "sitemap", [f"{origin}/{number + 1}.xml"])

    with SampleServer(respond=respond) as site:
        found = inline.run("map", url=f"{site.url}sitemap.xml", speed="max", allow_private=["127.0.0.0/8"])
        assert len(site.requests) <= mapping.MOST_NESTED + 4
    assert found == []
    assert inline.job.status == "completed"
    assert "over_limit" in {url.reason for url in inline.ledger()}


def test_a_map_is_no_page_in_the_cache(maps: Maps, inline: Inline) -> None:
    maps.gate.set()
    first = inline.run("map", **payload(maps))[0]
    (page,) = inline.run("page", **payload(maps) | {"url": first.final_url, "max_age": 3600})
    assert page.metadata["error"] == "http_404", "it was fetched"


def one_sitemap(path: str, locs: list[str]) -> SampleServer:
    """A site with one sitemap, which its robots.txt names."""

    def respond(target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            return SampleAnswer(200, "text/plain", f"Sitemap: {origin}{path}".encode())
        return listing("urlset", "url", [loc.format(origin=origin) for loc in locs])

    return SampleServer(respond=respond)


def test_the_long_url_of_a_sitemap_is_not_in_every_result(inline: Inline) -> None:
    """A sitemap of half a megabyte at such a URL became 400 MB."""
    with one_sitemap(f"/{'x' * 7_900}.xml", [f"{{origin}}/{number}" for number in range(20)]) as site:
        found = inline.run("map", url=site.url, speed="max", allow_private=["127.0.0.0/8"])
    assert len(found) == 20
    (sitemap,) = (row for row in inline.ledger() if row.reason == "sitemap")
    assert [each.data for each in found] == [{"sitemap_id": sitemap.id}] * 20


def test_a_result_has_the_url_of_its_sitemap(inline: Inline) -> None:
    with one_sitemap("/map.xml", ["{origin}/page"]) as site:
        (found,) = inline.run("map", url=site.url, speed="max", allow_private=["127.0.0.0/8"])
        assert found.data == {"sitemap": f"{site.url}map.xml"}


HTML = "text/html"
NAMED = ["/page/1", "/page/2.pdf", "/error.xml", "/map.xml", "/moved"]


def named_sitemaps(target: str, origin: str) -> SampleAnswer:
    """A site whose robots.txt names a page and a PDF as sitemaps. Its only sitemap lists the page, and another one."""
    match target:
        case "/robots.txt":
            return SampleAnswer(200, "text/plain", "\n".join(f"Sitemap: {origin}{path}" for path in NAMED).encode())
        case "/map.xml":
            return listing("urlset", "url", [f"{origin}/page/1", f"{origin}/page/3"])
        case "/page/2.pdf":
            return SampleAnswer(200, "application/pdf", b"%PDF-1.4 nothing")
        case "/moved":
            return SampleAnswer(301, HTML, b"", f"{origin}/page/9")
    return SampleAnswer(200, HTML, b"<html><p>Words")


@pytest.mark.parametrize("limit", [None, 2])
def test_a_page_that_robots_txt_names_as_a_sitemap_is_listed(inline: Inline, limit: int | None) -> None:
    with SampleServer(respond=named_sitemaps) as site:
        found = inline.run("map", url=site.url, speed="max", allow_private=["127.0.0.0/8"], limit=limit)
        urls_found = [result.final_url for result in found]
        listed = {f"{site.url}page/{name}" for name in ("1", "2.pdf", "3")}
    assert len(set(urls_found)) == len(urls_found)
    assert set(urls_found) == listed if limit is None else len(urls_found) == limit and set(urls_found) < listed
    tally, counts = urls.tally(inline.database, inline.job.id), urls.counts(inline.database, inline.job.id)
    assert (tally["done"], tally["queued"]) == (len(found), 0)
    assert counts.discovered == sum(tally.values())


def test_relative_entries_do_not_repeat_a_long_url_without_end(inline: Inline) -> None:
    """Each entry has a few bytes in the file, and 8,000 in the ledger."""
    locs = [f"?{number}" for number in range(1_000)]
    with one_sitemap(f"/{'x' * 7_900}.xml", locs) as site:
        found = inline.run("map", url=site.url, speed="max", allow_private=["127.0.0.0/8"])
        wire = urls.counts(inline.database, inline.job.id).bytes
    tuning = Tuning()
    assert 0 < sum(len(each.final_url) for each in found) <= tuning.page_bytes + tuning.page_factor * wire
    (sitemap,) = (row for row in inline.ledger() if row.reason == "sitemap")
    assert "more were left out" in (sitemap.detail or "")


class Sizes(Watcher):
    """The sizes of the checkpoints of a job."""

    def __init__(self) -> None:
        self.results: list[int] = []
        self.urls: list[int] = []
        self.bytes: list[int] = []

    def recorded(self, checkpoint: Checkpoint) -> None:
        self.results.append(len(checkpoint.results))
        self.urls.append(len(checkpoint.found))
        self.bytes.append(sum(len(each.data) + len(each.final_url) for each in checkpoint.results))


def sizes_of(inline: Inline, site: SampleServer) -> Sizes:
    sizes = Sizes()
    asked = NewJob("map", {"url": site.url, "speed": "max", "allow_private": ["127.0.0.0/8"]})
    inline.job = run_here(inline.database, inline.settings, asked, logging.getLogger("test"), sizes)
    assert inline.job.status == "completed"
    return sizes


def test_a_large_sitemap_is_stored_in_portions(inline: Inline) -> None:
    most = Tuning().hard_unsaved + mapping._PORTION
    with one_sitemap("/map.xml", [f"{{origin}}/{number}" for number in range(3 * most)]) as site:
        sizes = sizes_of(inline, site)
    assert sum(sizes.results) == 3 * most
    assert max(sizes.results) <= most
    tally = urls.tally(inline.database, inline.job.id)
    assert (tally["done"], tally["queued"]) == (3 * most, 0)


def test_urls_of_other_sites_come_in_portions_too(inline: Inline) -> None:
    most = Tuning().hard_unsaved + mapping._PORTION
    with one_sitemap("/map.xml", [f"https://elsewhere.example/{number}" for number in range(3 * most)]) as site:
        sizes = sizes_of(inline, site)
    assert sum(sizes.results) == 0
    assert sum(sizes.urls) == 3 * most + 1
    assert max(sizes.urls) <= most + 1


def test_long_urls_are_stored_in_smaller_portions(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "_PORTION_BYTES", 20_000)
    monkeypatch.setattr(mapping, "_MOST_UNSAVED_BYTES", 100_000)
    with one_sitemap("/map.xml", [f"{{origin}}/{number}-{'x' * 7_900}" for number in range(100)]) as site:
        sizes = sizes_of(inline, site)
    assert sum(sizes.results) == 100
    assert max(sizes.bytes) <= 100_000 + 20_000 + 8_192


def test_what_is_beyond_the_limit_of_a_job_is_only_counted(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "_PORTION", 10)
    with one_sitemap("/map.xml", [f"{{origin}}/{number}" for number in range(100)]) as site:
        found = inline.run("map", url=site.url, speed="max", allow_private=["127.0.0.0/8"], limit=15)
    assert len(found) == 15
    (sitemap,) = (row for row in inline.ledger() if row.reason == "sitemap")
    assert sitemap.detail == "urlset with 100 entries; 80 of them are beyond the limit of the job"


class RobotsThatFail:
    """A site whose robots.txt fails once, waits for the gate then, and names a sitemap at an unusual address."""

    def __init__(self, named: str) -> None:
        self.gate = threading.Event()
        self.asked_again = threading.Event()
        self._named = named
        self._failed = False
        self.server = SampleServer(respond=self._respond)

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            if not self._failed:
                self._failed = True
                return SampleAnswer(503, XML, b"")
            self.asked_again.set()
            self.gate.wait(120)
            return SampleAnswer(200, "text/plain", f"Sitemap: {origin}{self._named}".encode())
        if target == self._named:
            return listing("urlset", "url", [f"{origin}/{page}" for page in range(EACH)])
        return SampleAnswer(404, XML, b"")


@pytest.mark.parametrize(("named", "ignores"), [("/odd/all.xml", False), ("/sitemap.xml", False), ("/odd", True)])
def test_the_sitemaps_of_a_robots_txt_that_failed_once_are_read(inline: Inline, named: str, ignores: bool) -> None:
    site = RobotsThatFail(named)
    site.gate.set()
    asked: dict[str, object] = {"speed": "max", "allow_private": ["127.0.0.0/8"], "ignore_robots": ignores}
    with site.server:
        found = inline.run("map", url=site.server.url, **asked)
    assert len({each.final_url for each in found}) == len(found) == EACH
    assert inline.job.status == "completed"


def test_a_map_that_was_paused_asks_again_for_a_robots_txt_that_failed(yard: Yard) -> None:
    """What it guessed meanwhile does not mean that it knows the sitemaps."""
    site = RobotsThatFail("/odd/all.xml")
    with site.server:
        asked = {"url": site.server.url, "speed": "max", "allow_private": ["127.0.0.0/8"]}
        (id,) = jobs.enqueue_many(yard.database, [NewJob("map", asked, max_retries=5)])
        yard.start(fence_after=60.0, stale_after=90.0)
        assert site.asked_again.wait(120)
        jobs.wish(yard.database, id, Verb.PAUSE)
        yard.wait_for(id, Status.PAUSED)
        assert {row.found_via for row in urls.queued(yard.database, id)} == {"guess"}
        site.gate.set()
        jobs.wish(yard.database, id, Verb.RESUME)
        yard.wait_for(id, Status.COMPLETED)
        assert len(list(results.every(yard.database, id))) == EACH
    assert yard.adds_up(id)


def test_a_map_ends_whose_robots_txt_never_comes(inline: Inline) -> None:
    def respond(target: str, origin: str) -> SampleAnswer:
        return SampleAnswer(503, XML, b"")

    with SampleServer(respond=respond) as site:
        found = inline.run("map", url=site.url, speed="max", allow_private=["127.0.0.0/8"])
        assert set(site.requests) == {"/robots.txt"}
    assert found == []
    assert {row.reason for row in inline.ledger()} == {"robots_unavailable"}

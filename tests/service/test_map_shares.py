"""Maps of several sites: no site takes what another one needs."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from silkline.crawl import url_shares
from silkline.kinds import map as mapping
from silkline.model.job import NewJob, Status
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, results
from tests.service.test_kind_map import XML, listing
from tests.support.inline import Inline
from tests.support.supervisors import Yard

Site = Callable[[str], SampleAnswer | None]
PATIENCE = 60


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    inline = Inline(tmp_path)
    yield inline
    inline.close()


class Sites:
    """A site that answers first, and one whose answers wait until `urgent` paths of the first were requested."""

    def __init__(self, stack: ExitStack) -> None:
        self.first: Site = lambda target: None
        self.second: Site = lambda target: None
        self.urgent = 1
        self._open = threading.Event()
        self._asked = 0
        self.servers = [
            stack.enter_context(SampleServer(respond=self._respond_first)),
            stack.enter_context(SampleServer(respond=self._respond_second)),
        ]
        stack.callback(self._open.set)

    def url(self, number: int, path: str = "") -> str:
        return self.servers[number].url + path

    def _respond_first(self, target: str, origin: str) -> SampleAnswer:
        answer = self.first(target)
        if answer is not None:
            self._asked += 1
            if self._asked > self.urgent:
                self._open.set()
        return answer or SampleAnswer(404, XML, b"")

    def _respond_second(self, target: str, origin: str) -> SampleAnswer:
        if target != "/robots.txt":
            self._open.wait(PATIENCE)
        return self.second(target) or SampleAnswer(404, XML, b"")

    def map(self, inline: Inline, **more: object) -> list[list[str]]:
        """The URLs of each site that a map of both lists."""
        seeds = [self.url(0), self.url(1)]
        found = inline.run("map", urls=seeds, speed="max", allow_private=["127.0.0.0/8"], **more)
        assert inline.job.status == "completed"
        return [[each.final_url for each in found if each.final_url.startswith(seed)] for seed in seeds]


@pytest.fixture
def sites() -> Iterator[Sites]:
    with ExitStack() as stack:
        yield Sites(stack)


def test_an_index_does_not_use_up_the_sitemaps_of_other_sites(
    sites: Sites, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "MOST_SITEMAPS", 6)
    monkeypatch.setattr(mapping, "_NOTED", 3)
    sites.first = lambda target: {
        "/sitemap.xml": listing("sitemapindex", "sitemap", [sites.url(0, f"{number}.xml") for number in range(50)]),
        "/0.xml": listing("urlset", "url", [sites.url(0, "page")]),
    }.get(target)
    sites.second = lambda target: {
        "/sitemap.xml": listing("sitemapindex", "sitemap", [sites.url(1, f"{number}.xml") for number in range(3)]),
        **{f"/{number}.xml": listing("urlset", "url", [sites.url(1, f"{number}")]) for number in range(3)},
    }.get(target)
    mine, others = sites.map(inline)
    assert (len(mine), len(others)) == (1, 3)
    assert len([row for row in inline.ledger() if row.reason == "over_limit"]) == 3


def test_a_site_cannot_hide_the_sitemaps_of_another_one(
    sites: Sites, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names them when it may name no more."""
    monkeypatch.setattr(mapping, "MOST_NAMED_FOR_OTHERS", 2)
    named = [sites.url(1, f"junk/{number}.xml") for number in range(30)] + [sites.url(1, "0.xml")]
    sites.first = lambda target: listing("sitemapindex", "sitemap", named) if target == "/sitemap.xml" else None
    sites.urgent = 0
    sites.second = lambda target: {
        "/sitemap.xml": listing("sitemapindex", "sitemap", [sites.url(1, "0.xml")]),
        "/0.xml": listing("urlset", "url", [sites.url(1, "page")]),
    }.get(target)
    _, others = sites.map(inline)
    assert others == [sites.url(1, "page")]
    assert sum("junk" in path for path in sites.servers[1].requests) == 2


@pytest.mark.parametrize("kind", ["urlset", "sitemapindex"])
def test_what_a_site_lists_hides_no_sitemap_of_another_one(inline: Inline, kind: str) -> None:
    """It lists them as pages; or it names one on a third host, which only the robots.txt of the other one may name."""
    was_read = threading.Event()

    def third_host(target: str, origin: str) -> SampleAnswer:
        return listing("sitemapindex", "sitemap", [f"{second.url}0.xml"])

    def victim(target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            was_read.wait(PATIENCE)
            return SampleAnswer(200, "text/plain", f"Sitemap: {elsewhere}\nSitemap: {origin}/1.xml".encode())
        return listing("urlset", "url", [f"{origin}/page{target}"])

    def attacker(target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            named = f"Sitemap: {origin}/a.xml\nSitemap: {origin}/b.xml\nUser-agent: *\nCrawl-delay: 1"
            return SampleAnswer(200, "text/plain", named.encode())
        if target == "/a.xml" and kind == "urlset":
            return listing("urlset", "url", [f"{second.url}{name}.xml" for name in (0, 1)] + [elsewhere])
        if target == "/a.xml":
            return listing("sitemapindex", "sitemap", [elsewhere, f"{origin}/last.xml"])
        if target == "/last.xml" or kind == "urlset":
            was_read.set()
        return SampleAnswer(404, XML, b"")

    with (
        SampleServer(respond=third_host) as third,
        SampleServer(respond=victim) as second,
        SampleServer(respond=attacker) as first,
    ):
        elsewhere = f"{third.url}index.xml"
        seeds = [first.url, second.url]
        found = inline.run("map", urls=seeds, speed="max", allow_private=["127.0.0.0/8"])
        pages = {each.final_url for each in found}
        assert {f"{second.url}page/{name}.xml" for name in (0, 1)} <= pages
        assert len(pages) == len(found)


def test_a_site_cannot_make_the_sitemaps_of_another_one_too_deep(
    inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the index of the other one at the greatest depth, before that one does."""
    monkeypatch.setattr(mapping, "MOST_NESTED", 1)
    index_was_read = threading.Event()

    def victim(target: str, origin: str) -> SampleAnswer:
        match target:
            case "/robots.txt":
                index_was_read.wait(PATIENCE)
            case "/sitemap.xml":
                return listing("sitemapindex", "sitemap", [f"{origin}/0.xml"])
            case "/0.xml":
                return listing("urlset", "url", [f"{origin}/page"])
        return SampleAnswer(404, XML, b"")

    with SampleServer(respond=victim) as second:

        def attacker(target: str, origin: str) -> SampleAnswer:
            if target == "/sitemap.xml":
                return listing("sitemapindex", "sitemap", [f"{second.url}sitemap.xml", f"{origin}/last.xml"])
            if target == "/last.xml":
                index_was_read.set()
            return SampleAnswer(404, XML, b"")

        with SampleServer(respond=attacker) as first:
            seeds = [first.url, second.url]
            found = inline.run("map", urls=seeds, speed="max", allow_private=["127.0.0.0/8"])
            assert [each.final_url for each in found] == [f"{second.url}page"]


@pytest.mark.parametrize(("listed", "expected"), [(15, (10, 10)), (4, (16, 4))])
def test_sites_share_the_limit_and_what_one_leaves_over_is_for_the_other(
    sites: Sites, inline: Inline, listed: int, expected: tuple[int, int]
) -> None:
    sitemaps = {
        f"/{name}.xml": listing("urlset", "url", [sites.url(0, f"{name}/{page}") for page in range(60)])
        for name in ("a", "b")
    }
    index = listing("sitemapindex", "sitemap", [sites.url(0, path[1:]) for path in sitemaps])
    sites.first = lambda target: index if target == "/sitemap.xml" else sitemaps.get(target)
    entries = [sites.url(1, str(page)) for page in range(listed)]
    sites.second = lambda target: listing("urlset", "url", entries) if target == "/sitemap.xml" else None
    mine, others = sites.map(inline, limit=20)
    assert (len(mine), len(others)) == expected
    assert len(set(mine + others)) == 20


def test_urls_that_a_site_lists_for_another_one_count_as_its_own(sites: Sites, inline: Inline) -> None:
    """And those for which it has no room may be listed by the other one."""
    strange = [sites.url(1, f"strange/{page}") for page in range(30)] + [sites.url(1, "page")]
    sites.first = lambda target: listing("urlset", "url", strange) if target == "/sitemap.xml" else None
    sites.urgent = 0
    sites.second = lambda target: listing("urlset", "url", [sites.url(1, "page")]) if target == "/sitemap.xml" else None
    _, others = sites.map(inline, limit=10)
    assert sites.url(1, "page") in others
    assert len(others) == 10


def test_empty_sitemaps_do_not_hold_up_other_sites(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_shares, "PATIENCE", 1.0)
    many = 10_000

    def empty(target: str, origin: str) -> SampleAnswer:
        if target == "/sitemap.xml":
            return listing("sitemapindex", "sitemap", [f"{origin}/{number}.xml" for number in range(many)])
        return listing("urlset", "url", []) if target[1].isdigit() else SampleAnswer(404, XML, b"")

    def honest(target: str, origin: str) -> SampleAnswer:
        pages = listing("urlset", "url", [f"{origin}/{page}" for page in range(30)])
        return pages if target == "/sitemap.xml" else SampleAnswer(404, XML, b"")

    with SampleServer(respond=empty) as first, SampleServer(respond=honest) as second:
        seeds = [first.url, second.url]
        found = inline.run("map", urls=seeds, speed="max", allow_private=["127.0.0.0/8"], limit=20)
        assert len(first.requests) < many
    assert len(found) == 20


def test_a_site_that_asks_for_a_crawl_delay_keeps_its_share(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delay is longer than others would wait for a site that does not answer."""
    monkeypatch.setattr(url_shares, "PATIENCE", 4.0)

    def greedy(target: str, origin: str) -> SampleAnswer:
        pages = listing("urlset", "url", [f"{origin}/{page}" for page in range(60)])
        return pages if target == "/sitemap.xml" else SampleAnswer(404, XML, b"")

    def polite(target: str, origin: str) -> SampleAnswer:
        match target:
            case "/robots.txt":
                rules = f"Sitemap: {origin}/all.xml\nUser-agent: *\nCrawl-delay: 7"
                return SampleAnswer(200, "text/plain", rules.encode())
            case "/all.xml":
                return listing("sitemapindex", "sitemap", [f"{origin}/0.xml"])
        return listing("urlset", "url", [f"{origin}/{page}" for page in range(10)])

    with SampleServer(respond=greedy) as first, SampleServer(respond=polite) as second:
        seeds = [first.url, second.url]
        found = inline.run("map", urls=seeds, speed="max", allow_private=["127.0.0.0/8"], limit=20)
        assert sum(each.final_url.startswith(second.url) for each in found) == 10
    assert len(found) == 20


class SlowRobots:
    """Two sites. The robots.txt of the second one arrives when the gate is opened, and that of the first one names a
    sitemap of the second one."""

    def __init__(self, stack: ExitStack) -> None:
        self.gate = threading.Event()
        self.asked = threading.Event()
        self.waiting = 0
        self.at_first = threading.Event()
        self.second = stack.enter_context(SampleServer(respond=self._respond_second))
        self.first = stack.enter_context(SampleServer(respond=self._respond_first))
        stack.callback(self.gate.set)

    def job(self, **more: object) -> NewJob:
        asked = {"urls": [self.second.url, self.first.url], "speed": "max", "allow_private": ["127.0.0.0/8"], **more}
        return NewJob("map", asked, max_retries=5)

    def _respond_first(self, target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            named = f"Sitemap: {origin}/map.xml\nSitemap: {self.second.url}named.xml\n"
            return SampleAnswer(200, "text/plain", named.encode())
        if target == "/map.xml":
            self.at_first.set()
        return listing("urlset", "url", [f"{origin}/{page}" for page in range(5)])

    def _respond_second(self, target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            self.asked.set()
            self.waiting += 1
            self.gate.wait(PATIENCE)
            self.waiting -= 1
            return SampleAnswer(404, XML, b"")
        name = {"/sitemap.xml": "listed", "/named.xml": "named"}.get(target)
        return listing("urlset", "url", [f"{origin}/{name}"]) if name else SampleAnswer(404, XML, b"")


@pytest.fixture
def slow_robots() -> Iterator[SlowRobots]:
    with ExitStack() as stack:
        yield SlowRobots(stack)


def test_a_slow_robots_txt_holds_up_only_its_own_site(slow_robots: SlowRobots, inline: Inline) -> None:
    def open_gate() -> None:
        slow_robots.at_first.wait()
        slow_robots.gate.set()

    opener = threading.Thread(target=open_gate, daemon=True)
    opener.start()
    found = inline.run("map", **slow_robots.job().payload)
    assert len({each.final_url for each in found}) == len(found) == 5 + 2
    assert len(slow_robots.second.requests) == len(set(slow_robots.second.requests)), "robots.txt arrived in time"


def test_a_map_with_enough_urls_does_not_wait_for_a_robots_txt(
    slow_robots: SlowRobots, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(url_shares, "PATIENCE", 0.0)
    found = inline.run("map", **slow_robots.job(limit=2).payload)
    assert len(found) == 2
    assert inline.job.status == "completed"
    assert slow_robots.waiting == 1, "its robots.txt did not arrive yet"


def test_a_map_that_was_killed_reads_the_robots_txt_that_was_missing(yard: Yard, slow_robots: SlowRobots) -> None:
    (id,) = jobs.enqueue_many(yard.database, [slow_robots.job()])
    yard.start(fence_after=60.0, stale_after=90.0)
    assert slow_robots.asked.wait(120)
    yard.wait_for_results(id, 5)
    os.kill(yard.runner_of(id), signal.SIGKILL)
    slow_robots.gate.set()
    yard.wait_for(id, Status.COMPLETED)
    found = [each.final_url for each in results.every(yard.database, id)]
    second = slow_robots.second.url
    assert sorted(each for each in found if each.startswith(second)) == [f"{second}listed", f"{second}named"]
    assert len(set(found)) == len(found) == 5 + 2
    assert yard.adds_up(id)

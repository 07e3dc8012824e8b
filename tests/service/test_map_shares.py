"""Maps of several sites: no site takes what another one needs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from silkline.kinds import map as mapping
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from tests.service.test_kind_map import XML, listing
from tests.support.inline import Inline

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

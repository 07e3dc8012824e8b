"""Maps that are limited, interrupted and misled."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.kinds import map as mapping
from silkline.model.job import NewJob, Status, Verb
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

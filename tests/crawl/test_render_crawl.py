"""Crawls whose pages need their scripts: the crawl goes on whatever the pages do, and the books balance."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.crawl import harness
from tests.crawl.harness import Crawl
from tests.crawl.renderers import browsers
from tests.crawl.scripted_pages import PAGES, ScriptedPages
from tests.support.supervisors import eventually

pytestmark = pytest.mark.usefixtures("chromium")


def linking(*paths: str) -> str:
    return PAGES["/plain"] + "".join(f"<a href={path}>{path}</a>" for path in paths)


@pytest.fixture
def site() -> Iterator[ScriptedPages]:
    with ScriptedPages(dict(PAGES)) as server:
        yield server


@pytest.fixture
def make(make_crawl: Callable[..., Crawl], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Crawl]:
    monkeypatch.setitem(harness.ENVIRONMENT, "SILKLINE_DATA", str(tmp_path / "data"))
    return make_crawl


def by_path(crawl: Crawl, site: ScriptedPages) -> dict[str, Any]:
    return {each.final_url.removeprefix(site.url): each for each in crawl.results()}


def reasons(crawl: Crawl, site: ScriptedPages) -> dict[str, tuple[str, str | None]]:
    return {
        url.removeprefix(site.url).partition("?")[0]: (row.state, row.reason) for url, row in crawl.ledger().items()
    }


def assert_nothing_left(crawl: Crawl) -> None:
    assert browsers(crawl.process.pid) == []


def test_auto_renders_what_needs_it_and_leaves_the_rest_alone(make: Callable[..., Crawl], site: ScriptedPages) -> None:
    site.pages["/"] = linking("/loop", "/built", "/plain", "/elsewhere", "/runaway")
    crawl = make(render_seconds=15.0, max_redirects=2)
    assert crawl.run(url=site.url, render="auto", content="markdown") == "completed"
    crawl.assert_books_balance()
    found = by_path(crawl, site)
    assert "# built by a script" in found["/built"].data["markdown"]
    assert found["/built"].metadata["rendered"] is True
    assert "found through a script" in found["/found"].data["markdown"], "a link that a script made was followed"
    assert "rendered" not in found["/plain"].metadata
    assert site.asked("/plain") == 1
    assert (found["/loop"].metadata["rendered"], found["/loop"].metadata["render_failed"]) == (False, "render_timeout")
    assert found["/built?from=elsewhere"].metadata["redirected_from"] == [f"{site.url}/elsewhere"]
    assert reasons(crawl, site)["/elsewhere"] == ("skipped", "redirected")
    assert [row.reason for row in crawl.ledger().values() if row.state == "failed"] == ["too_many_redirects"]
    assert_nothing_left(crawl)


def test_always_renders_every_page_whoever_reads_them(make: Callable[..., Crawl], site: ScriptedPages) -> None:
    site.pages["/"] = linking("/huge", "/built", "/plain", "/alert")
    crawl = make()
    spec = {"render": "always", "content": "markdown", "fetchers": 2, "parsers": 1}
    assert crawl.run(urls=[site.url, f"{site.url}/plain"], **spec) == "completed"
    crawl.assert_books_balance()
    found = by_path(crawl, site)
    assert all(each.metadata["rendered"] is True for each in found.values())
    assert {"/", "/built", "/found", "/plain", "/alert"} == found.keys()
    assert reasons(crawl, site)["/huge"] == ("failed", "render_too_large")
    assert site.asked("/plain") == 1
    assert_nothing_left(crawl)


def test_a_pause_does_not_wait_for_a_page_in_a_browser(make: Callable[..., Crawl], site: ScriptedPages) -> None:
    release = threading.Event()
    site.on_hold = lambda: release.wait(120) and None
    crawl = make(render_seconds=120.0)
    crawl.enqueue(urls=[f"{site.url}/plain", f"{site.url}/holding"], render="always")
    crawl.start()
    try:
        eventually("a page is in a browser", lambda: site.asked("/hold") and crawl.counts.done == 1)
        crawl.order("paused")
        assert crawl.finish() == "paused"
    finally:
        release.set()
    assert (crawl.counts.done, crawl.counts.queued + crawl.counts.in_flight) == (1, 1)
    assert_nothing_left(crawl)
    crawl.put_back()
    crawl.start()
    assert crawl.finish() == "completed"
    crawl.assert_books_balance()
    assert crawl.counts.done == 2


def test_pages_that_hang_in_browsers_hold_up_no_host_that_needs_none(
    make: Callable[..., Crawl], site: ScriptedPages
) -> None:
    """Two addresses have more such pages than the queue before the browsers may hold."""
    release, hanging = threading.Event(), threading.Event()
    pages = {f"/held{number}": "<div id=app></div><script src=/hold></script>" for number in range(6)}
    with ExitStack() as stack:

        def hang() -> None:
            hanging.set()
            release.wait(120)

        slow = [stack.enter_context(ScriptedPages(pages, hang, f"127.0.0.{number}")) for number in (2, 3)]
        site.on_hold = lambda: hanging.wait(120) and None
        site.pages["/hold"] = linking(*(f"/plain?{number}" for number in range(40)))
        crawl = make(render_seconds=120.0, most_rendering=4)
        held = [server.url + path for path in pages for server in slow]
        crawl.enqueue(urls=[*held, f"{site.url}/hold"], render="auto", fetchers=1)
        crawl.start()
        try:
            eventually("the other host is done", lambda: crawl.counts.done == 41)
        finally:
            release.set()
        assert crawl.finish() == "completed"
        assert (crawl.counts.done, crawl.counts.failed) == (41 + len(held), 0)
    crawl.assert_books_balance()
    assert_nothing_left(crawl)


def test_the_limit_counts_pages_that_wait_for_a_browser(make: Callable[..., Crawl], site: ScriptedPages) -> None:
    crawl = make()
    urls = [f"{site.url}/found?{number}" for number in range(8)]
    assert crawl.run(urls=urls, render="always", limit=3) == "completed"
    assert crawl.counts.done == 3
    crawl.assert_books_balance()

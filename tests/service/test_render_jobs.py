"""Jobs whose pages go through a browser: what is stored of them, what stands in the way, and who dies with whom."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from silkline.kinds import browser
from silkline.model.job import NewJob, Status
from silkline.runner.leftovers import environment
from silkline.runner.protocol import JOB_TAG
from silkline.store import jobs, results
from tests.crawl.renderers import alive, browsers, folder_of, tree_of
from tests.crawl.scripted_pages import PAGES, ScriptedPages
from tests.support.inline import Inline
from tests.support.supervisors import eventually
from tests.support.supervisors import yard as open_yard

OWN = {"speed": "max", "allow_private": ["127.0.0.0/8"]}


@pytest.fixture
def site() -> Iterator[ScriptedPages]:
    with ScriptedPages(dict(PAGES)) as server:
        yield server


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    place = Inline(tmp_path)
    yield place
    place.close()


@pytest.mark.usefixtures("chromium")
def test_pages_as_their_scripts_make_them(inline: Inline, site: ScriptedPages) -> None:
    paths = ("/built", "/plain", "/words", "/elsewhere", "/pushed", "/missing")
    stored = inline.run("page", urls=[site.url + path for path in paths], render="auto", **OWN)
    found = {(each.original_url or "").removeprefix(site.url): each for each in stored}
    assert "# built by a script" in found["/built"].data["markdown"]
    assert f"[further]({site.url}/found)" in found["/built"].data["markdown"]
    about = found["/built"].metadata
    assert (about["rendered"], about["render_requests"], about["http_status"]) == (True, 1, 200)
    assert about["render_seconds"] > 0
    assert "rendered" not in found["/plain"].metadata
    assert "rendered" not in found["/words"].metadata
    assert (site.asked("/plain"), site.asked("/pushed")) == (1, 1)
    assert found["/elsewhere"].final_url == f"{site.url}/built?from=elsewhere"
    assert found["/elsewhere"].metadata["redirected_from"] == [f"{site.url}/elsewhere"]
    assert found["/pushed"].final_url == f"{site.url}/pushed"
    assert found["/pushed"].metadata["script_url"] == f"{site.url}/pushed/on"
    assert found["/missing"].metadata["error"] == "http_404"


@pytest.mark.usefixtures("chromium")
def test_a_page_that_was_not_rendered_does_not_answer_for_one_that_must_be(inline: Inline, site: ScriptedPages) -> None:
    asked = f"{site.url}/plain"
    inline.run("page", url=asked, **OWN)
    (rendered,) = inline.run("page", url=asked, render="always", max_age=3600, **OWN)
    assert rendered.metadata["rendered"] is True
    (again,) = inline.run("page", url=asked, render="always", max_age=3600, **OWN)
    assert again.metadata["cached"] is True
    assert site.asked("/plain") == 2


@pytest.mark.parametrize("kind", ["page", "site"])
def test_without_a_browser(inline: Inline, site: ScriptedPages, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    monkeypatch.setattr("silkline.fetch.render.find_browser", lambda: None)
    inline.run(kind, url=f"{site.url}/built", render="always", **OWN)
    inline.assert_failed("no Chromium was found", "apt install chromium")
    assert site.log == []
    (stored,) = inline.run(kind, url=f"{site.url}/built", render="auto", **OWN)
    assert (stored.metadata["rendered"], stored.metadata["render_failed"]) == (False, "renderer_missing")


def test_rendering_can_be_switched_off(inline: Inline, site: ScriptedPages) -> None:
    inline.change_settings(max_concurrent_chrome=0)
    inline.run("page", url=f"{site.url}/built", render="always", **OWN)
    inline.assert_failed("max_concurrent_chrome is 0")
    (stored,) = inline.run("page", url=f"{site.url}/built", render="auto", **OWN)
    assert "rendered" not in stored.metadata


def test_a_proxy_that_browsers_cannot_be_led_through(inline: Inline, site: ScriptedPages) -> None:
    inline.run("page", url=f"{site.url}/built", render="always", proxy="socks5://127.0.0.1:9", **OWN)
    inline.assert_failed("http or https proxy only")


@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize("victim", ["runner", "supervisor"])
def test_kill_9_takes_the_browser_along_and_the_job_goes_on(tmp_path: Path, site: ScriptedPages, victim: str) -> None:
    first, release = threading.Event(), threading.Event()

    def hold_the_first() -> None:
        if not first.is_set():
            first.set()
            release.wait(120)

    site.on_hold = hold_the_first
    with open_yard(f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path) as yard:
        payload = {"url": f"{site.url}/holding", "render": "always", **OWN}
        (id,) = jobs.enqueue_many(yard.database, [NewJob("page", payload, max_retries=5)])
        supervisor = yard.start()
        try:
            eventually("the page is in a browser", first.is_set)
            runner = yard.runner_of(id)
            (process,) = browsers(runner)
            tree, folder = tree_of(process), folder_of(process)
            # One that is just being born looks like its parent until it has become a program of its own.
            eventually("it is the job's only one", lambda: [each.pid for each in of_job(id)] == [process.pid])
            if victim == "runner":
                os.kill(runner, signal.SIGKILL)
            else:
                supervisor.kill()
            eventually("the browser is gone", lambda: not alive(tree))
        finally:
            release.set()
        if victim == "supervisor":
            yard.start()
        assert yard.wait_for(id, Status.COMPLETED).attempt > 1
        (stored,) = results.every(yard.database, id)
        assert stored.metadata["rendered"] is True
        eventually("nothing is left", lambda: not folder.exists() and not of_job(id))


def of_job(id: str) -> list[psutil.Process]:
    """Browsers that have the tag of this job."""
    return [each for each in browsers() if environment(each.pid).get(JOB_TAG, "").startswith(id)]

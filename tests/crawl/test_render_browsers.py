"""The browsers that pages are in: how many, what becomes of them, and what is left behind: nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from silkline.fetch import render
from silkline.fetch.render_browser import BrowserFolder, sweep
from silkline.fetch.render_program import WHAT_TO_INSTALL
from silkline.metrics import process
from silkline.metrics.gather import gather
from silkline.model.fetched import Fetched
from tests.crawl.harness import ENVIRONMENT
from tests.crawl.renderers import (
    LIMITS,
    Renderers,
    alive,
    attack,
    browsers,
    folder_of,
    own_browsers,
    run,
    shown,
    tree_of,
)
from tests.crawl.scripted_pages import ScriptedPages, scripted
from tests.support.supervisors import eventually

pytestmark = pytest.mark.usefixtures("chromium")


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedPages]:
    with ScriptedPages() as server:
        yield server


# How many at once.


def test_no_more_pages_than_places_whoever_asks(tmp_path: Path) -> None:
    """Two renderers, as in two processes, share two places; five pages, of which two meet and never three."""
    inside: list[int] = []
    most = 0
    lock, met = threading.Lock(), threading.Event()

    def hold() -> None:
        nonlocal most
        with lock:
            inside.append(1)
            most = max(most, len(inside))
            if len(inside) == 2:
                met.set()
        met.wait(60)
        with lock:
            inside.pop()

    with ScriptedPages(on_hold=hold) as site:

        async def work(renderers: Renderers) -> list[Fetched]:
            client = renderers.client(site)
            pair = renderers(client), renderers(client)
            return await asyncio.gather(
                *(shown(pair[number % 2], client, f"{site.url}/held?{number}") for number in range(5))
            )

        found = run(tmp_path, work)
        assert all(b"let go" in each.rendered.body for each in found)
    assert most == 2


def test_a_page_for_which_there_is_no_place_in_time_can_be_tried_again(tmp_path: Path) -> None:
    release = threading.Event()
    with ScriptedPages(on_hold=lambda: release.wait(60) and None) as site:

        async def work(renderers: Renderers) -> Fetched:
            client = renderers.client(site)
            first = asyncio.create_task(shown(renderers(client, count=1), client, f"{site.url}/held"))
            await asyncio.to_thread(eventually, "it is in a browser", lambda: site.asked("/hold"))
            late = renderers(client, count=1, limits=replace(LIMITS, wait_seconds=0.2))
            found = await shown(late, client, f"{site.url}/built")
            release.set()
            assert (await first).ok
            return found

        found: Fetched = run(tmp_path, work)
        assert (found.reason, found.temporary) == ("render_busy", True)


# Browsers that die.


def test_a_browser_that_is_killed_is_replaced_and_its_page_tried_again(tmp_path: Path) -> None:
    process.detach()
    process.attach(tmp_path, "runner")
    killed: list[int] = []

    def kill_once() -> None:
        if not killed:
            (browser,) = own_browsers()
            killed.append(browser.pid)
            browser.kill()

    with ScriptedPages(on_hold=kill_once) as site:

        async def work(renderers: Renderers) -> Fetched:
            client = renderers.client(site)
            return await shown(renderers(client), client, f"{site.url}/held")

        found: Fetched = run(tmp_path, work)
        assert found.rendered is not None
        assert b"let go" in found.rendered.body
        assert len(killed) == 1
        assert site.asked("/hold") == 2
    counted = gather(tmp_path / process.FOLDER)
    process.detach()
    names = ("browser_starts_total", "browser_deaths_total", "browser_waiting")
    assert [counted.numbers[f"silkline_{name}"][()] for name in names] == [2, 1, 0]
    assert counted.numbers["silkline_browser_pages_total"] == {("rendered",): 1}
    assert sum(counted.distributions["silkline_render_seconds"][()].counts) == 1


def test_a_page_that_brings_every_browser_down_has_a_reason(tmp_path: Path) -> None:
    def kill_always() -> None:
        for browser in own_browsers():
            browser.kill()

    with ScriptedPages(on_hold=kill_always) as site:

        async def work(renderers: Renderers) -> list[Fetched]:
            client = renderers.client(site)
            renderer = renderers(client)
            return [await shown(renderer, client, site.url + path) for path in ("/held", "/built")]

        failed, after = run(tmp_path, work)
        assert failed.reason == "render_crashed"
        assert b"built by a script" in after.rendered.body


def test_a_browser_is_replaced_after_its_share_of_pages(tmp_path: Path, site: ScriptedPages) -> None:
    async def work(renderers: Renderers) -> list[int]:
        client = renderers.client(site)
        renderer = renderers(client, limits=replace(LIMITS, pages_per_browser=1))
        seen = []
        for _ in range(2):
            assert (await shown(renderer, client, f"{site.url}/found")).ok
            seen += [browser.pid for browser in own_browsers()]
        return seen

    first, second = run(tmp_path, work)
    assert first != second


def test_kill_9_leaves_no_browser_and_the_next_start_no_folder(tmp_path: Path, site: ScriptedPages) -> None:
    """The process that renders is killed while a page is in its browser."""
    before = site.asked("/hang")
    script = Path(__file__).with_name("render_one.py")
    command = [sys.executable, str(script), f"{site.url}/endless", str(tmp_path)]
    owner = subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True)
    try:
        eventually("its page is in a browser", lambda: site.asked("/hang") > before)
        (browser,) = browsers(owner.pid)
        folder = folder_of(browser)
        tree = tree_of(browser)
        assert len(tree) > 2
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    eventually("the browser is gone", lambda: not alive(tree))
    eventually("its folder is gone", lambda: sweep() >= 0 and not folder.exists())


def test_the_folder_of_a_browser_that_lives_is_left_alone(tmp_path: Path, site: ScriptedPages) -> None:
    async def work(renderers: Renderers) -> None:
        client = renderers.client(site)
        renderer = renderers(client)
        assert (await shown(renderer, client, f"{site.url}/found")).ok
        (browser,) = own_browsers()
        sweep()
        assert folder_of(browser).is_dir()
        assert (await shown(renderer, client, f"{site.url}/found")).ok

    run(tmp_path, work)


def test_a_folder_is_locked_as_soon_as_others_can_see_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, swept = os.open, []

    def look(path: Path, flags: int, mode: int) -> int:
        """The file is there, the lock is not: somebody sweeps just now."""
        descriptor = opened(path, flags, mode)
        monkeypatch.undo()
        swept.append(sweep())
        return descriptor

    monkeypatch.setattr("os.open", look)
    folder = BrowserFolder()
    assert swept
    assert (folder.path / "in-use").exists()
    sweep()
    assert folder.path.is_dir()
    folder.remove()
    assert not folder.path.exists()


# Other browsers, and none.


def test_a_browser_that_runs_elsewhere(tmp_path: Path, chromium: Path) -> None:
    profile = tmp_path / "profile"
    flags = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--no-first-run"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []
    process = subprocess.Popen(
        [chromium, *flags, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    try:
        where = profile / "DevToolsActivePort"
        eventually("it listens", lambda: where.exists() and len(where.read_text().splitlines()) == 2)
        port, path = where.read_text().splitlines()
        with ScriptedPages({}) as inside, ScriptedPages() as site:
            site.pages = {**site.pages, "/attack": attack([f"127.0.0.1:{inside.port}/secret"], 9)}

            async def work(renderers: Renderers) -> list[Fetched]:
                client = renderers.client(site)
                by_port = renderers(client, url=f"http://127.0.0.1:{port}")
                by_socket = renderers(client, url=f"ws://127.0.0.1:{port}{path}")
                nobody = renderers(client, url="http://127.0.0.1:9")
                return [
                    await shown(by_port, client, f"{site.url}/built"),
                    await shown(by_socket, client, f"{site.url}/attack"),
                    await shown(nobody, client, f"{site.url}/built"),
                ]

            built, attacked, refused = run(tmp_path, work)
            assert b"built by a script" in built.rendered.body
            assert b"tried" in attacked.rendered.body
            assert inside.log == []
            assert refused.reason == "renderer_missing"
            assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_without_a_browser_it_says_what_to_install(
    tmp_path: Path, site: ScriptedPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "find_browser", lambda: None)

    async def work(renderers: Renderers) -> list[Fetched]:
        client = renderers.client(site)
        both = renderers(client), renderers(client, fallback=True)
        return [await shown(renderer, client, f"{site.url}/built") for renderer in both]

    failed, noted = run(tmp_path, work)
    assert (failed.reason, failed.detail) == ("renderer_missing", WHAT_TO_INSTALL)
    assert (noted.reason, noted.rendered.reason) == (None, "renderer_missing")


FILLS = {
    # The script that never comes keeps the page open.
    "/blobs": scripted(
        "globalThis.kept = []; for (let i = 0; i < 60; i++) kept.push(new Blob([new Uint8Array(2e7).fill(i)]))",
        "<script async src=/hang></script>",
    ),
    "/good": scripted("document.body.append('here ' + 'I am')"),
}


def test_a_page_that_fills_the_process_of_the_browser_ends_it_and_no_other_page(tmp_path: Path) -> None:
    """Blobs are not in the process of their page. Whatever page is beside it is tried again in another browser."""
    with ScriptedPages(FILLS) as own:

        async def work(renderers: Renderers) -> tuple[Fetched, Fetched]:
            client = renderers.client(own)
            renderer = renderers(client, limits=replace(LIMITS, max_browser_memory=300 << 20))
            filling = await shown(renderer, client, f"{own.url}/blobs")
            return filling, await shown(renderer, client, f"{own.url}/good")

        filling, good = run(tmp_path, work)
    assert (filling.reason, filling.detail) == ("render_too_large", "the browser (browser) took more than 314 MB")
    assert good.rendered is not None
    assert b"here I am" in good.rendered.body

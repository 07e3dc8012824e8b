"""Pages in a real Chromium: what becomes of them, what they may not do, and what is left behind: nothing."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from silkline.fetch import render
from silkline.fetch.client import Client
from silkline.fetch.dns import Resolution, SystemResolver
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.render import Renderer
from silkline.fetch.render_browser import WHAT_TO_INSTALL, sweep
from silkline.fetch.settings import FetchSettings, RenderLimits
from silkline.model.fetched import Fetched, Request
from tests.crawl.harness import ENVIRONMENT
from tests.crawl.scripted_pages import ScriptedPages, scripted
from tests.support.supervisors import eventually

pytestmark = pytest.mark.usefixtures("chromium")
# Patient with a machine that has other things to do.
LIMITS = RenderLimits(seconds=60, settle_seconds=60, snapshot_seconds=60, quiet_seconds=0.3)
MARK = "silkline-browser-"


class Renderers:
    """Renderers on places of their own, against servers that they may reach."""

    def __init__(self, places: Path) -> None:
        self._places = places
        self._open: list[Any] = []

    def client(self, *servers: ScriptedPages, **settings: Any) -> Client:
        guard = Guard(parse_exemption(f"127.0.0.1:{server.port}") for server in servers)
        client = Client(FetchSettings(user_agent="Silkline/test", **settings), guard, SystemResolver(look_up=look_up))
        self._open += [client, client.resolver]
        return client

    def __call__(
        self, client: Client, *, count: int = 2, fallback: bool = False, limits: RenderLimits = LIMITS, url: str = ""
    ) -> Renderer:
        limits = replace(limits, origin_headers=client.settings.origin_headers)
        renderer = Renderer(client, places=self._places, count=count, fallback=fallback, limits=limits, url=url)
        self._open.append(renderer)
        return renderer

    def close(self) -> None:
        for each in reversed(self._open):
            each.close()


def look_up(host: str) -> Resolution:
    """Names that lead into this machine, as an attacker's would."""
    return ("127.0.0.1",)


def run(places: Path, work: Callable[[Renderers], Coroutine[Any, Any, Any]]) -> Any:
    async def whole() -> Any:
        renderers = Renderers(places)
        try:
            return await work(renderers)
        finally:
            renderers.close()
            await asyncio.sleep(0)

    return uvloop.run(whole())


async def shown(renderer: Renderer, client: Client, url: str) -> Fetched:
    fetched = await client.fetch(Request(url))
    assert fetched.ok, fetched
    return await renderer.render(fetched)


def browsers(folder: str = MARK) -> list[psutil.Process]:
    """The main processes of browsers that we started."""
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            if any(folder in each for each in line) and not any("type=" in each for each in line):
                found.append(process)
        except psutil.Error:
            continue
    return found


def folder_of(browser: psutil.Process) -> Path:
    (folder,) = (each.partition("=")[2] for each in browser.cmdline() if each.startswith("--user-data-dir="))
    assert MARK in folder
    return Path(folder)


def anything_of(folder: Path) -> list[psutil.Process]:
    """Every process that a browser with this folder has started, whoever its parent is by now."""
    return [each for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or ())]


def own_browsers() -> list[psutil.Process]:
    return [process for process in browsers() if process.ppid() == os.getpid()]


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedPages]:
    with ScriptedPages() as server:
        yield server


# What becomes of a page.

GOOD = {
    "/built": "<h1>built by a script</h1>",
    "/alert": "after the dialogs",
    "/reloads": "still here",
    "/popups": "after the popups",
    "/download": "after the download",
    "/archive": "your download begins",
    "/shadow": "<in-shadow><p>from the shadow, into the light</p></in-shadow>",
    "/pushed": "pushed on",
    "/unseen": "seen",
    "/worker": "service workers: false",
    "/many": "asked",
    "/heavy": "asked",
}
BAD = {"/loop": "render_timeout", "/greedy": "render_too_large", "/huge": "render_too_large"}


@pytest.fixture(scope="module")
def outcomes(site: ScriptedPages, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fetched]:
    """Every page, side by side, in as few browsers as that takes."""

    async def work(renderers: Renderers) -> dict[str, Fetched]:
        client = renderers.client(site)
        patient = renderers(client, count=4, limits=replace(LIMITS, max_bytes=5_000_000, max_memory=400 << 20))
        paths = ["/greedy", *GOOD, "/elsewhere", "/runaway", "/huge"]
        tasks = [shown(patient, client, site.url + path) for path in paths]
        for path, limits in {
            "/loop": replace(LIMITS, seconds=0.5, snapshot_seconds=1),
            "/endless": replace(LIMITS, seconds=4),
        }.items():
            paths.append(path)
            tasks.append(shown(renderers(client, count=4, limits=limits), client, site.url + path))
        return dict(zip(paths, await asyncio.gather(*tasks), strict=True))

    found: dict[str, Fetched] = run(tmp_path_factory.mktemp("places"), work)
    return found


@pytest.mark.parametrize("path", GOOD)
def test_scripts_run_and_what_they_made_is_read(outcomes: dict[str, Fetched], path: str) -> None:
    found = outcomes[path]
    assert (found.reason, found.location) == (None, None)
    assert found.rendered is not None
    assert found.rendered.reason is None
    assert GOOD[path] in found.rendered.body.decode()


@pytest.mark.parametrize("path", BAD)
def test_a_page_that_does_not_end_well_has_a_reason(outcomes: dict[str, Fetched], path: str) -> None:
    assert outcomes[path].reason == BAD[path], outcomes[path].detail
    assert outcomes[path].detail


def test_a_page_that_never_finishes_loading_is_read_as_it_stands(outcomes: dict[str, Fetched]) -> None:
    endless = outcomes["/endless"].rendered
    assert endless is not None
    assert b"the beginning" in endless.body
    assert endless.cut == ("time",)


def test_a_script_that_leads_elsewhere_is_a_redirect(site: ScriptedPages, outcomes: dict[str, Fetched]) -> None:
    assert outcomes["/elsewhere"].location == f"{site.url}/built?from=elsewhere"
    assert outcomes["/elsewhere"].redirect
    assert (outcomes["/runaway"].location or "").startswith(f"{site.url}/runaway?0.")


def test_the_address_is_where_the_scripts_say_it_is(site: ScriptedPages, outcomes: dict[str, Fetched]) -> None:
    assert {outcomes[path].rendered.url for path in ("/pushed", "/built")} == {  # type: ignore[union-attr]
        *(f"{site.url}/pushed/on", f"{site.url}/built")
    }


def test_what_only_those_without_scripts_should_see_is_left_out(outcomes: dict[str, Fetched]) -> None:
    assert b"turn on JavaScript" not in outcomes["/unseen"].rendered.body  # type: ignore[union-attr]


def test_a_page_gets_no_more_than_its_share(outcomes: dict[str, Fetched]) -> None:
    many, heavy, reloads = (outcomes[path].rendered for path in ("/many", "/heavy", "/reloads"))
    assert many is not None
    assert heavy is not None
    assert reloads is not None
    assert (many.requests, many.cut) == (LIMITS.max_requests, ("requests",))
    assert heavy.cut == ("bytes",)
    assert reloads.cut == ("navigations",)


def test_the_document_is_not_asked_for_again(site: ScriptedPages, outcomes: dict[str, Fetched]) -> None:
    assert site.asked("/shadow") == 1
    assert site.asked("/reloads") == 1 + LIMITS.max_reloads
    assert site.asked("/favicon.ico") == 0


def test_nothing_is_left_of_the_browsers(outcomes: dict[str, Fetched]) -> None:
    assert outcomes
    assert own_browsers() == []


# Whom a page may talk to.


def test_a_page_reaches_nothing_that_the_guard_refuses(tmp_path: Path) -> None:
    """By request, redirect, frame, socket or name: nobody hears anything but the page's own origin."""
    with ScriptedPages({}) as inside, ScriptedPages() as site, socket.socket(type=socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.setblocking(False)
        hosts = ("127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]", "inside.example")
        targets = [f"{host}:{inside.port}/secret" for host in hosts]
        site.pages = {**site.pages, "/attack": attack(targets, stun.getsockname()[1])}

        async def work(renderers: Renderers) -> Fetched:
            client = renderers.client(site)
            return await shown(renderers(client), client, f"{site.url}/attack")

        found: Fetched = run(tmp_path, work)
        assert found.rendered is not None
        assert b"tried" in found.rendered.body
        assert site.asked("/words") >= 1
        assert inside.log == []
        with pytest.raises(BlockingIOError):
            stun.recv(1)


def attack(targets: list[str], stun: int) -> str:
    return scripted(
        f"""
        const targets = {targets!r}, tries = [fetch('/words')];
        const attempt = start => {{ try {{ tries.push(start()) }} catch {{}} }};
        const element = (name, fields) => document.body.append(Object.assign(document.createElement(name), fields));
        const work = `for (const at of ${{JSON.stringify(targets)}}) fetch('http://' + at, {{mode: 'no-cors'}})`;
        const worker = new Worker(URL.createObjectURL(new Blob([work])));
        for (const at of targets) {{
          attempt(() => fetch('http://' + at, {{mode: 'no-cors'}}));
          attempt(() => fetch('https://' + at, {{mode: 'no-cors'}}));
          attempt(() => navigator.sendBeacon('http://' + at, 'x'));
          attempt(() => new WebSocket('ws://' + at));
          attempt(() => new EventSource('http://' + at));
          element('iframe', {{src: 'http://' + at}});
          element('script', {{src: 'http://' + at}});
          element('img', {{src: 'http://' + at}});
          element('link', {{rel: 'preconnect', href: 'http://' + at}});
          element('link', {{rel: 'stylesheet', href: 'http://' + at}});
        }}
        const frame = document.createElement('iframe');
        document.body.append(frame);
        for (const place of [window, frame.contentWindow]) attempt(() => {{
          const peer = new place.RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{stun}'}}]}});
          peer.createDataChannel('x');
          return peer.createOffer().then(offer => peer.setLocalDescription(offer));
        }});
        Promise.allSettled(tries).then(() => document.body.append('tried'));
        """
    )


def test_a_redirect_into_the_machine_is_not_followed(tmp_path: Path) -> None:
    with ScriptedPages({}) as inside, ScriptedPages() as site:
        site.pages = {**site.pages, "/away": scripted(f"location = 'http://127.0.0.1:{inside.port}/secret'")}

        async def work(renderers: Renderers) -> tuple[Fetched, Fetched]:
            client = renderers.client(site)
            found = await shown(renderers(client), client, f"{site.url}/away")
            return found, await client.fetch(Request(found.location or ""))

        found, onward = run(tmp_path, work)
        assert found.redirect
        assert onward.reason == "address_blocked"
        assert inside.log == []


def test_the_jobs_own_headers_go_to_its_own_origin_only(tmp_path: Path) -> None:
    with ScriptedPages() as other, ScriptedPages() as site:
        site.pages = {
            **site.pages,
            "/both": scripted(
                f"Promise.allSettled([fetch('/words'), fetch('{other.url}/words')])"
                ".then(() => document.body.append(document.cookie))"
            ),
        }

        async def work(renderers: Renderers) -> Fetched:
            own = {site.url: (("X-Token", "hush"), ("Cookie", "job=9"))}
            client = renderers.client(site, other, origin_headers=own)
            return await shown(renderers(client), client, f"{site.url}/both")

        found: Fetched = run(tmp_path, work)
        assert found.rendered is not None
        assert b"first=1; second=2" in found.rendered.body  # what the document's answer set
        (headers,) = (headers for path, headers in site.log if path == "/words")
        assert (headers["x-token"], headers["user-agent"]) == ("hush", "Silkline/test")
        assert set(headers["cookie"].split("; ")) == {"job=9", "first=1", "second=2"}
        (headers,) = (headers for path, headers in other.log if path == "/words")
        assert "x-token" not in headers
        assert "job=9" not in headers.get("cookie", "")


def test_each_page_starts_with_a_clean_slate(tmp_path: Path) -> None:
    with ScriptedPages() as site:
        keep = "document.body.append('[' + (localStorage.kept || '') + ']'); localStorage.kept = 'kept'"
        site.pages = {**site.pages, "/keeps": scripted(keep)}

        async def work(renderers: Renderers) -> list[Fetched]:
            client = renderers.client(site)
            renderer = renderers(client)
            return [await shown(renderer, client, f"{site.url}/keeps") for _ in range(2)]

        for found in run(tmp_path, work):
            assert b"[]" in found.rendered.body


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
        (browser,) = (each for each in browsers() if each.ppid() == owner.pid)
        (folder,) = (Path(each.partition("=")[2]) for each in browser.cmdline() if each.startswith("--user-data-dir="))
        assert len(anything_of(folder)) > 2
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    eventually("the browser is gone", lambda: not anything_of(folder))
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

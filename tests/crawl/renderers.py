"""Renderers for tests, and the browsers that they started."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import uvloop

from silkline.crawl.render_turns import RenderTurns
from silkline.fetch.client import HttpClient
from silkline.fetch.dns import Resolution, SystemResolver
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.render import Renderer
from silkline.fetch.settings import FetchSettings, RenderLimits
from silkline.model.fetched import Fetched, Request
from tests.crawl.scripted_pages import ScriptedPages, scripted

# Patient with a machine that has other things to do.
LIMITS = RenderLimits(seconds=60, settle_seconds=60, snapshot_seconds=60, quiet_seconds=0.3)
MARK = "silkline-browser-"


class Renderers:
    """Renderers on places of their own, against servers that they may reach."""

    def __init__(self, places: Path) -> None:
        self._places = places
        self._open: list[Any] = []

    def client(self, *servers: ScriptedPages, **settings: Any) -> HttpClient:
        guard = Guard(parse_exemption(f"127.0.0.1:{server.port}") for server in servers)
        client = HttpClient(
            FetchSettings(user_agent="Silkline/test", **settings), guard, SystemResolver(look_up=look_up)
        )
        self._open += [client, client.resolver]
        return client

    def __call__(
        self,
        client: HttpClient,
        *,
        count: int = 2,
        fallback: bool = False,
        limits: RenderLimits = LIMITS,
        url: str = "",
    ) -> Renderer:
        limits = replace(limits, origin_headers=client.settings.origin_headers)
        renderer = Renderer(
            client,
            places=self._places,
            count=count,
            turns=RenderTurns(),
            fallback=fallback,
            limits=limits,
            url=url,
        )
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


async def shown(renderer: Renderer, client: HttpClient, url: str) -> Fetched:
    fetched = await client.fetch(Request(url))
    assert fetched.ok, fetched
    return await renderer.render(fetched)


def browsers(parent: int | None = None) -> list[psutil.Process]:
    """The main processes of browsers that we started: all of them, or those that this process did.

    Other tests that run just now have browsers too, which come and go while we look.
    """
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            main = any(MARK in each for each in line) and not any("type=" in each for each in line)
            if main and parent in (None, process.ppid()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def folder_of(browser: psutil.Process) -> Path:
    (folder,) = (each.partition("=")[2] for each in browser.cmdline() if each.startswith("--user-data-dir="))
    assert MARK in folder
    return Path(folder)


def tree_of(browser: psutil.Process) -> list[psutil.Process]:
    """A browser and every process that it has started."""
    return [browser, *browser.children(recursive=True)]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """The processes that still run. One that has ended may still have an entry."""
    return [each for each in processes if each.is_running() and not _has_ended(each)]


def _has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def own_browsers() -> list[psutil.Process]:
    return browsers(os.getpid())


def attack(targets: list[str], stun: int) -> str:
    return scripted(
        f"""
        fetch('/until');
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
        Promise.allSettled(tries).then(() => {{ document.body.append('tried'); fetch('/now') }});
        """
    )

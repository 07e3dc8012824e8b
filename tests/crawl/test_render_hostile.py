"""Pages that want to bring their browser down: only they fail, and no page beside them."""

import asyncio
import signal
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from silkline.fetch.render_cdp import Conversation, PipeLine
from silkline.fetch.render_memory import TooLarge, too_large
from silkline.fetch.settings import MIB, RenderLimits
from silkline.model.fetched import Fetched
from tests.crawl.renderers import LIMITS, Renderers, own_browsers, run, shown
from tests.crawl.scripted_pages import ScriptedPages, scripted

OFF_SCREEN = "new OffscreenCanvas(9, 9).getContext('webgl')"
HOSTILE = {
    "/webgl": scripted(
        f"""
        const found = ['webgl', 'webgl2'].map(name => document.createElement('canvas').getContext(name));
        found.push({OFF_SCREEN});
        const flat = document.createElement('canvas').getContext('2d');
        flat.fillStyle = 'rgb(1, 2, 3)';
        flat.fillRect(0, 0, 9, 9);
        const worker = new Worker(URL.createObjectURL(new Blob(["postMessage(!!{OFF_SCREEN})"])));
        worker.onmessage = ({{data}}) => {{
          document.body.append('contexts: ', found.map(each => !!each), ',', data);
          document.body.append(' pixel: ', flat.getImageData(1, 1, 1, 1).data.join());
          fetch('/good');
        }};
        fetch('/hold');
        """.replace('"', "`")
    ),
    # Far below the limit of the page's own process. The script that never comes keeps the page open.
    "/large": scripted("globalThis.kept = new Uint8Array(4e8).fill(1)", "<script async src=/hang></script>"),
    # Six characters for each byte: an event of 360 MB.
    "/body": scripted(
        "fetch('/words', {method: 'POST', body: new Uint8Array(6e7)}); document.body.append('se' + 'nt')"
    ),
    "/words": "words",
    "/held": scripted("fetch('/hold').then(() => document.body.append('let go'))"),
    "/good": scripted("document.body.append('here ' + 'I am')"),
}


@pytest.mark.usefixtures("chromium")
def test_pages_have_no_webgl_but_flat_canvases(tmp_path: Path) -> None:
    with ScriptedPages(HOSTILE) as site:

        async def work(renderers: Renderers) -> Fetched:
            client = renderers.client(site)
            return await shown(renderers(client), client, f"{site.url}/webgl")

        found: Fetched = run(tmp_path, work)
    assert found.rendered is not None
    assert b"contexts: false,false,false,false pixel: 1,2,3,255" in found.rendered.body


@pytest.mark.usefixtures("chromium")
def test_a_browser_that_is_too_large_as_a_whole_ends_and_its_page_has_the_reason(tmp_path: Path) -> None:
    with ScriptedPages(HOSTILE) as site:

        async def work(renderers: Renderers) -> list[Fetched]:
            client = renderers.client(site)
            renderer = renderers(client, limits=replace(LIMITS, max_total_memory=300 * MIB, total_memory_per_page=MIB))
            return [await shown(renderer, client, site.url + path) for path in ("/large", "/good")]

        large, good = run(tmp_path, work)
    assert (large.reason, large.detail) == ("render_too_large", "the browser took more than 315 MB")
    assert b"here I am" in good.rendered.body


@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP])
def test_pages_whose_browser_died_or_hung_are_tried_again_one_by_one(tmp_path: Path, by: signal.Signals) -> None:
    """Three pages are in one browser when it ends. Then each has a browser of its own."""
    first: list[int] = []
    later: list[list[int]] = []
    lock, ended = threading.Lock(), threading.Event()

    def hold() -> None:
        with lock:
            if ended.is_set():
                later.append([each.pid for each in own_browsers() if each.status() != psutil.STATUS_STOPPED])
                return
            first.append(1)
            if len(first) == 3:
                for browser in own_browsers():
                    browser.send_signal(by)
                ended.set()
        ended.wait(60)

    with ScriptedPages(HOSTILE, on_hold=hold) as site:

        async def work(renderers: Renderers) -> list[Fetched]:
            client = renderers.client(site)
            renderer = renderers(client, count=3, limits=replace(LIMITS, seconds=20, snapshot_seconds=5))
            return await asyncio.gather(*(shown(renderer, client, f"{site.url}/held?{each}") for each in range(3)))

        found = run(tmp_path, work)
    assert all(b"let go" in each.rendered.body for each in found)
    assert [len(each) for each in later] == [1, 1, 1]
    assert len({pid for each in later for pid in each}) == 3


@pytest.mark.usefixtures("chromium")
def test_a_request_with_a_huge_body_costs_only_the_request(tmp_path: Path) -> None:
    with ScriptedPages(HOSTILE) as site:

        async def work(renderers: Renderers) -> tuple[list[Fetched], bool]:
            client = renderers.client(site)
            renderer = renderers(
                client, limits=replace(LIMITS, settle_seconds=5, max_browser_memory=8 << 30, max_total_memory=8 << 30)
            )
            assert (await shown(renderer, client, f"{site.url}/good")).ok
            (browser,) = own_browsers()
            found = [await shown(renderer, client, site.url + path) for path in ("/body", "/good")]
            return found, browser.is_running()

        (body, good), same = run(tmp_path, work)
    assert b"sent" in body.rendered.body
    assert b"here I am" in good.rendered.body
    assert same, "the browser lives on"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"browser": 700, "renderer": 1000, "GPU": 50}, TooLarge((), "")),
        ({"browser": 100, "renderer": 1100, "GPU": 2000}, TooLarge((1,), "")),
        ({"browser": 100, "renderer": 100, "GPU": 1600}, TooLarge((), "the browser (GPU) took more than 1610 MB")),
        (
            {"browser": 100, "network.mojom.NetworkService": 1600},
            TooLarge((), "the browser (network.mojom.NetworkService) took more than 1610 MB"),
        ),
        ({"browser": 900, "renderer": 500, "GPU": 800}, TooLarge((), "the browser took more than 2147 MB")),
    ],
)
def test_every_process_of_a_browser_has_a_limit_and_so_has_their_sum(sizes: dict[str, int], expected: TooLarge) -> None:
    """Two pages, sizes in MiB. Only the process of a page is the fault of one page."""
    kinds = dict(enumerate(sizes))
    held = {pid: sizes[kind] * MIB for pid, kind in kinds.items()}
    assert too_large(kinds, held, 2, RenderLimits()) == expected


def test_an_event_that_is_too_long_is_skipped_and_not_held() -> None:
    part = b"x" * MIB

    async def work() -> None:
        talk, heard = Conversation(), []
        talk.listen("", lambda method, params: heard.append(method))
        line = PipeLine(talk)
        line.data_received(b'{"method":"first"}\0{"method":"long","params":{"a":"')
        for _ in range(300):
            line.data_received(part)
        assert len(line._incoming._held) == 0
        line.data_received(b'"}}\0{"method":"next"}\0{"method":')
        line.data_received(b'"last"}\0')
        assert heard == ["first", "next", "last"]

    asyncio.run(work())

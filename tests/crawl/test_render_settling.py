"""When a page in a real Chromium is done: nothing that it shows late is missing, and nobody waits for a timer."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from silkline.model.fetched import Fetched
from tests.crawl.renderers import LIMITS, Renderers, run, shown
from tests.crawl.scripted_pages import ScriptedPages, scripted

pytestmark = pytest.mark.usefixtures("chromium")
SHOW = "document.body.append('all ' + 'there')"
ALL = b"all there"

# Pages whose clock may be virtual.
TIMED = {
    "/at-once": SHOW,
    "/50-ms": f"setTimeout(() => {SHOW}, 50)",
    "/300-ms": f"setTimeout(() => {SHOW}, 300)",
    "/900-ms": f"setTimeout(() => {SHOW}, 900)",
    "/interval": f"let n = 0; const id = setInterval(() => {{ if (++n == 5) {{ {SHOW}; clearInterval(id) }} }}, 100)",
    "/chain-of-timers": f"const next = n => setTimeout(() => n ? next(n - 1) : {SHOW}, 200); next(6)",
    "/chain-with-requests": f"""
        const next = n => setTimeout(() => fetch('/words?' + n).then(() => n ? next(n - 1) : {SHOW}), 300);
        next(4)""",
    "/timer-after-answer": f"fetch('/hold').then(() => setTimeout(() => {SHOW}, 900))",
    "/messages": f"""
        const line = new MessageChannel();
        let n = 0;
        line.port1.onmessage = () => {{
          for (let i = 0; i < 1e6; i++);
          if (++n < 30) line.port2.postMessage(0); else {SHOW}
        }};
        line.port2.postMessage(0)""",
    "/reloaded": f"""
        if (sessionStorage.again) setTimeout(() => {SHOW}, 300);
        else {{ sessionStorage.again = 1; setTimeout(() => location.reload(), 300) }}""",
    "/list-that-grows": f"""
        let n = 0;
        const end = document.body.appendChild(document.createElement('i'));
        const isSeen = seen => {{ if (seen.some(each => each.isIntersecting)) fetch('/words').then(add) }};
        const watch = new IntersectionObserver(isSeen);
        const add = () => {{
          watch.unobserve(end);
          for (let i = 0; i < 5; i++, n++) {{
            const row = document.createElement('p');
            row.style.height = '100px';
            end.before(row);
          }}
          if (n < 20) watch.observe(end); else {SHOW}
        }};
        watch.observe(end)""",
    "/written-again": f"""
        setTimeout(() => {{
          document.open();
          document.write('<p>again</p>');
          document.close();
          const line = new MessageChannel();
          let n = 0;
          const show = () => setTimeout(() => {SHOW}, 300);
          line.port1.onmessage = () => {{ if (++n < 30) line.port2.postMessage(0); else show() }};
          line.port2.postMessage(0);
        }}, 100)""",
    # Several times: the browser does not always say how the request of a document ended that was left while it loaded.
    **dict.fromkeys(
        (f"/left-while-it-loads/{number}" for number in range(8)),
        f"if (sessionStorage.again) {SHOW}; else {{ sessionStorage.again = 1; location.reload() }}",
    ),
}
# Pages that do not become quiet. Nobody must wait for them until their time is over.
RESTLESS = {
    "/clock": f"setInterval(() => {{ document.title = Math.random() }}, 100); {SHOW}",
    "/polls": f"setInterval(() => fetch('/words'), 200); {SHOW}",
}
# Work that a virtual clock does not know about.
OUTSIDE = {
    "/listens": f"new EventSource('/hang'); {SHOW}",
    "/frames": f"let n = 0; const step = () => ++n < 12 ? requestAnimationFrame(step) : {SHOW}; step()",
    "/web-worker": f"""
        const code = 'setTimeout(() => postMessage(1), 100)';
        new Worker(URL.createObjectURL(new Blob([code]))).onmessage = () => {SHOW}""",
    "/database": f"""
        const open = indexedDB.open('a', 1);
        open.onupgradeneeded = () => open.result.createObjectStore('s');
        open.onsuccess = () => {{
          const store = open.result.transaction('s', 'readwrite').objectStore('s');
          store.put(1, 1).onsuccess = () => {SHOW}
        }}""",
    "/animation-and-timer": f"""
        const step = () => {{ document.body.style.left = '1px'; requestAnimationFrame(step) }};
        step();
        setTimeout(() => {SHOW}, 900)""",
    "/busy": f"""
        const busy = () => {{ const end = Date.now() + 20; while (Date.now() < end); {SHOW} }};
        addEventListener('load', () => setTimeout(busy))""",
}
PAGES = {path: scripted(script) for path, script in {**TIMED, **RESTLESS, **OUTSIDE}.items()}


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedPages]:
    with ScriptedPages({**PAGES, "/words": "words"}, on_hold=lambda: time.sleep(0.7)) as server:
        yield server


@pytest.fixture(scope="module")
def outcomes(site: ScriptedPages, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fetched]:
    """Every page. For the first two groups no quiet time is long enough: they end only because they are known to be
    done. Where that is not known because a busy machine shows a frame only every few seconds, the page is opened once
    more, alone."""

    async def work(renderers: Renderers) -> dict[str, Fetched]:
        client = renderers.client(site)
        certain = renderers(
            client, count=4, limits=replace(LIMITS, seconds=60, settle_seconds=3600, quiet_seconds=3600)
        )
        quiet = renderers(client, count=4, limits=replace(LIMITS, quiet_seconds=2))
        # A page that waits for its clock does not answer: it is tried again in real time.
        impatient = renderers(client, count=4, limits=replace(LIMITS, settle_seconds=2, snapshot_seconds=2))
        ways = dict.fromkeys(PAGES, certain) | dict.fromkeys(OUTSIDE, quiet) | {"/busy": impatient}
        tasks = [shown(ways[path], client, site.url + path) for path in PAGES]
        found = dict(zip(PAGES, await asyncio.gather(*tasks), strict=True))
        late = [path for path, one in found.items() if one.rendered is not None and "time" in one.rendered.cut]
        return found | {path: await shown(ways[path], client, site.url + path) for path in late}

    return run(tmp_path_factory.mktemp("places"), work)  # type: ignore[no-any-return]


@pytest.mark.parametrize("path", PAGES)
def test_nothing_that_a_page_shows_late_is_missing(path: str, outcomes: dict[str, Fetched]) -> None:
    rendered = outcomes[path].rendered
    assert rendered is not None
    assert rendered.reason is None, rendered.detail
    assert ALL in rendered.body
    assert "time" not in rendered.cut

"""Pages in a real Chromium that want to end the job, act with its account, or send requests that nobody counts."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from silkline.fetch.render_page import PageInBrowser
from silkline.model.fetched import Fetched, Rendered
from tests.crawl.renderers import Renderers, run, shown
from tests.crawl.scripted_pages import ScriptedPages, scripted

pytestmark = pytest.mark.usefixtures("chromium")

HALVES = {
    "/title": r"document.title = 'x\ud800y'",
    "/text": r"document.body.append('x\ud800y', '\\\\ud800 \\udfff')",
    "/attribute": r"document.body.setAttribute('a', '\udfff')",
    "/frame": r"const f = document.createElement('iframe'); f.name = '\ud800'; document.body.append(f)",
    "/dialog": r"alert('\ud800')",
    "/post": r"fetch('/words', {method: 'POST', body: '\ud800'})",
    "/bytes": "const bytes = new Uint8Array(65536); crypto.getRandomValues(bytes);"
    "for (const body of [bytes, new Uint8Array([0xed, 0xa0, 0x80, 0xff])]) fetch('/words', {method: 'POST', body})",
    "/query": r"fetch('/words?\ud800'); history.pushState(0, '', '?\ud800')",
}


def test_half_a_character_costs_no_page(tmp_path: Path) -> None:
    """Scripts can put half a surrogate pair into every text that the browser tells us."""
    pages = {path: scripted(f"{script}; document.body.append('rea' + 'ched')") for path, script in HALVES.items()}
    unexpected: list[Any] = []
    with ScriptedPages({**pages, "/words": "words"}) as site:

        async def work(renderers: Renderers) -> list[Fetched]:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: unexpected.append(context))
            client = renderers.client(site)
            renderer = renderers(client)
            return await asyncio.gather(*(shown(renderer, client, site.url + path) for path in pages))

        found: list[Fetched] = run(tmp_path, work)
    assert unexpected == []
    for path, each in zip(pages, found, strict=True):
        assert each.rendered is not None
        assert b"reached" in each.rendered.body, (path, each)
    assert "x\ufffdy" in found[0].rendered.body.decode()  # type: ignore[union-attr]


def test_an_unexpected_error_costs_only_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    show = PageInBrowser.show

    async def fails_once(page: PageInBrowser, *given: Any) -> Rendered:
        monkeypatch.setattr(PageInBrowser, "show", show)
        raise KeyError("cssContentSize")

    monkeypatch.setattr(PageInBrowser, "show", fails_once)
    with ScriptedPages() as site:

        async def work(renderers: Renderers) -> list[Fetched]:
            client = renderers.client(site)
            renderer = renderers(client)
            return [await shown(renderer, client, f"{site.url}/built") for _ in range(2)]

        failed, good = run(tmp_path, work)
    assert (failed.reason, failed.detail) == ("render_failed", "KeyError('cssContentSize')")
    assert b"built by a script" in good.rendered.body


# The account of the job.


def render_with_token(tmp_path: Path, site: ScriptedPages, other: ScriptedPages, url: str) -> None:
    """Render a page with a token and a cookie for `site`."""

    async def work(renderers: Renderers) -> Fetched:
        own = {site.url: (("X-Token", "hush"), ("Cookie", "job=9"))}
        client = renderers.client(site, other, origin_headers=own)
        return await shown(renderers(client), client, url)

    found: Fetched = run(tmp_path, work)
    assert found.rendered is not None
    assert b"all done" in found.rendered.body


def trusted(site: ScriptedPages, path: str) -> list[bool]:
    """For each request of the path, whether it had the credentials of the job."""
    seen = [headers for each, headers in site.log if each == path]
    assert all(("x-token" in each) == ("job=9" in each.get("cookie", "")) for each in seen)
    return ["x-token" in each for each in seen]


DONE = "document.body.append('all ' + 'done')"


def test_a_frame_of_another_site_does_not_act_with_the_account_of_the_job(tmp_path: Path) -> None:
    with ScriptedPages({}) as other, ScriptedPages({}) as site:
        attack = (
            f"Promise.allSettled([fetch('{site.url}/api?plain', {{mode: 'no-cors', method: 'POST', body: 'x'}}),"
            f"fetch('{site.url}/api?read', {{headers: {{'X-A': '1'}}}})]).then(() => location = '{site.url}/api?moved')"
        )
        other.pages = {
            "/foreign": scripted(attack, f"<iframe src='{site.url}/nested'></iframe>"),
            "/words": "words",
        }
        site.pages = {
            "/": scripted(
                f"const ended = [...document.querySelectorAll('iframe')].map(frame => new Promise(done => "
                f"frame.onload = done)); const worker = new Worker(URL.createObjectURL(new Blob([`fetch("
                f"'{site.url}/api?worker').then(() => postMessage(0))`]))); const works = new Promise(done => "
                f"worker.onmessage = done); Promise.allSettled([...ended, works, fetch('/api?own'),"
                f"fetch('{other.url}/redirect?to={site.url}/api?back', {{mode: 'no-cors'}}),"
                f"fetch('/redirect?to={site.url}/api?round')]).then(() => {{ {DONE} }})",
                f"<iframe src='{other.url}/foreign'></iframe><iframe src='/inside'></iframe>",
            ),
            "/inside": scripted("fetch('/api?inside')"),
            "/nested": scripted("fetch('/api?nested')"),
            "/api": "",
        }
        render_with_token(tmp_path, site, other, f"{site.url}/")
        for path in ("/api?own", "/api?worker", "/api?inside", "/inside", "/api?round"):
            assert trusted(site, path) == [True], path
        for path in ("/api?plain", "/api?read", "/api?read#preflight", "/nested", "/api?back"):
            assert trusted(site, path) == [False], path
        assert not any(trusted(site, "/api?moved") + trusted(site, "/api?nested"))


def test_a_page_of_another_site_does_not_act_with_the_account_of_the_job(tmp_path: Path) -> None:
    with ScriptedPages({"/api": "", "/frame": scripted("fetch('/api?frame')")}) as site, ScriptedPages({}) as other:
        other.pages = {
            "/": scripted(
                f"const framed = new Promise(done => document.querySelector('iframe').onload = done);"
                f"Promise.allSettled([fetch('{site.url}/api?page'), framed]).then(() => {{ {DONE} }})",
                f"<iframe src='{site.url}/frame'></iframe>",
            )
        }
        render_with_token(tmp_path, site, other, f"{other.url}/")
        assert (trusted(site, "/api?page"), trusted(site, "/frame")) == ([False], [False])
        assert not any(trusted(site, "/api?frame"))


def test_other_sites_do_not_learn_the_path_of_a_page_with_credentials(tmp_path: Path) -> None:
    with ScriptedPages({"/words": "words"}) as other, ScriptedPages({}) as site:
        script = (
            f"Promise.allSettled([fetch('/api'), fetch('/redirect?to={other.url}/words')]).then(() => {{ {DONE} }})"
        )
        site.pages = {"/secret/page": scripted(script), "/api": ""}
        render_with_token(tmp_path, site, other, f"{site.url}/secret/page")
        assert [headers["referer"] for path, headers in site.log if path == "/api"] == [f"{site.url}/secret/page"]
        assert [headers["referer"] for path, headers in other.log if path == "/words"] == [f"{site.url}/"]


# Requests that the browser sends for a page, but not as requests of this page.


def wait(site: ScriptedPages) -> None:
    """Time in which the others would send something."""
    site.closing.wait(1.5)


def test_popups_service_workers_and_speculation_send_nothing(tmp_path: Path) -> None:
    rules = '{"%s": [{"source": "list", "urls": ["/%s"], "eagerness": "immediate"}]}'
    before = "".join(
        f"<script type=speculationrules>{rules % (kind, kind)}</script>" for kind in ("prefetch", "prerender")
    )
    opens = """
        const element = (name, fields) => {
          const made = Object.assign(document.createElement(name), fields);
          document.body.append(made);
          return made;
        };
        for (const rel of ['opener', 'noopener']) element('a', {href: '/popup', target: '_blank', rel}).click();
        element('form', {action: '/popup', target: 'named'}).submit();
        window.open('/popup');
        const frame = element('iframe', {});
        frame.contentWindow.open('/popup');
        fetch('/hold').then(() => document.body.append('all ' + 'done'));
        """
    pages = {
        "/": scripted(opens, before),
        "/popup": scripted("fetch('/in-popup'); navigator.serviceWorker.register('/worker')"),
        "/worker": "fetch('/in-worker')",
        "/prefetch": "",
        "/prerender": scripted("fetch('/in-prerender')"),
    }
    with ScriptedPages(pages) as site:
        site.on_hold = partial(wait, site)

        async def work(renderers: Renderers) -> Fetched:
            client = renderers.client(site)
            return await shown(renderers(client), client, f"{site.url}/")

        found: Fetched = run(tmp_path, work)
        assert found.rendered is not None
        assert b"all done" in found.rendered.body
        assert {path for path, _ in site.log} == {"/", "/hold"}

"""Pages in a real Chromium that want to keep our process busy with what the browser tells about them."""

from dataclasses import replace
from pathlib import Path

import pytest

from silkline.fetch.render_cdp import Conversation
from silkline.fetch.render_messages import SHORT, Skipped, number_of
from silkline.fetch.settings import MIB
from silkline.model.fetched import Fetched
from tests.crawl.renderers import LIMITS, Renderers, own_browsers, run, shown
from tests.crawl.scripted_pages import ScriptedPages, scripted

pytestmark = pytest.mark.usefixtures("chromium")

GOOD = scripted("document.body.append('here ' + 'I am')")
FRAMES = """
    setInterval(() => {{
      for (let i = 0; i < 20; i++) {{
        const frame = document.createElement('iframe');
        frame.name = '{0}'.repeat(3e5);
        document.body.append(frame);
        frame.remove();
      }}
    }})"""
HALVES = "more than 4 MB of events with invalid characters"
MANY = "more than 8 MB of events"
FLOODS = {
    "frames with invalid names": (FRAMES.format(r"\ud800"), HALVES),
    "frames with long names": (FRAMES.format("x"), MANY),
    "small events": ("setInterval(() => { for (let i = 0; i < 500; i++) fetch('data:,' + Math.random()) })", MANY),
    "workers": ("setInterval(() => new Worker('data:text/javascript,' + 'x'.repeat(1e6)).terminate())", MANY),
}
# Ways to answer for a function of ours that runs in the world of the page.
REPLACED_BY_PAGE = {
    "Promise": "globalThis.Promise = function () { return {then(done) { done(value) }} }",
    "then": "Promise.prototype.then = function (done) { done(value) }",
    "performance": "globalThis.performance = {dispatchEvent() { return value }}; globalThis.Event = () => value",
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_page_that_floods_us_with_events_is_given_up_alone(tmp_path: Path, kind: str) -> None:
    script, detail = FLOODS[kind]
    with ScriptedPages({"/flood": scripted(script), "/good": GOOD}) as site:

        async def work(renderers: Renderers) -> tuple[list[Fetched], bool]:
            client = renderers.client(site)
            renderer = renderers(client, limits=replace(LIMITS, seconds=20, snapshot_seconds=5, max_events=8 * MIB))
            assert (await shown(renderer, client, f"{site.url}/good")).ok
            (browser,) = own_browsers()
            found = [await shown(renderer, client, site.url + path) for path in ("/flood", "/good")]
            return found, browser.is_running()

        (flood, good), same = run(tmp_path, work)
    assert (flood.reason, flood.detail) == ("render_too_large", detail)
    assert b"here I am" in good.rendered.body
    assert same, "the browser lives on"


@pytest.mark.parametrize("name", REPLACED_BY_PAGE)
def test_a_page_cannot_choose_what_our_scripts_return(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our question whether the page is quiet was answered with a list of six million lists."""
    longest = 0
    heard = Conversation.heard

    def measure(talk: Conversation, data: bytes | bytearray | Skipped) -> None:
        nonlocal longest
        if isinstance(data, Skipped):
            longest = max(longest, data.size)
        elif number_of(data) is not None:
            longest = max(longest, len(data))
        heard(talk, data)

    monkeypatch.setattr(Conversation, "heard", measure)
    script = f"const value = Array(2e5).fill([]); {REPLACED_BY_PAGE[name]}; document.body.append('rea' + 'ched')"
    with ScriptedPages({"/": scripted(script)}) as site:

        async def work(renderers: Renderers) -> Fetched:
            client = renderers.client(site)
            # No quiet time is long enough: the page ends because it is known to be done.
            certain = replace(LIMITS, seconds=20, settle_seconds=3600, quiet_seconds=3600)
            return await shown(renderers(client, limits=certain), client, f"{site.url}/")

        found: Fetched = run(tmp_path, work)
    assert found.rendered is not None
    assert b"reached" in found.rendered.body
    assert found.rendered.cut == ()
    assert longest < 10_000


def test_an_answer_that_is_too_long_ends_only_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No page can make such an answer any more, so a script of ours does."""
    monkeypatch.setattr("silkline.fetch.render_page.PROBE", f"(() => 'x'.repeat({2 * SHORT}))")
    with ScriptedPages({"/good": GOOD}) as site:

        async def work(renderers: Renderers) -> list[Fetched]:
            client = renderers.client(site)
            renderer = renderers(client)
            found = [await shown(renderer, client, f"{site.url}/good")]
            monkeypatch.undo()
            (browser,) = own_browsers()
            found.append(await shown(renderer, client, f"{site.url}/good"))
            assert browser.is_running()
            return found

        long, good = run(tmp_path, work)
    assert (long.reason, long.detail) == ("render_too_large", "the page made an answer of the browser too long")
    assert b"here I am" in good.rendered.body

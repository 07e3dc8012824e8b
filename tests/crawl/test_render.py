"""Pages in a real Chromium: what becomes of them, and whom they may talk to."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from silkline.model.fetched import Fetched, Request
from tests.crawl.renderers import LIMITS, Renderers, attack, own_browsers, run, shown
from tests.crawl.scripted_pages import ScriptedPages, scripted

pytestmark = pytest.mark.usefixtures("chromium")


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
    "/hidden-attributes": "attributes read",
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
            # Time enough for a loaded machine to show the page at all.
            "/loop": replace(LIMITS, seconds=10, snapshot_seconds=1),
            "/endless": replace(LIMITS, seconds=15),
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
    assert (outcomes["/runaway"].location or "").startswith(f"{site.url}/runaway?")


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

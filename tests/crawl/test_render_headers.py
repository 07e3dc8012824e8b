"""What a browser is handed of an answer, and what happens when it refuses it. A stand-in takes the browser's place."""

import asyncio
from typing import Any, cast

import pytest

from silkline.fetch.render_cdp import CommandRefused, Conversation
from silkline.fetch.render_page import PageInBrowser
from silkline.fetch.render_proxy import PageProxy
from silkline.fetch.settings import RenderLimits
from silkline.model.fetched import RENDER_REFUSED, Fetched, Rendered

URL = "http://shop.test/"


class Browser:
    """Asks for the document, and refuses it or shows it as an empty page."""

    def __init__(self, refusal: str = "", event: tuple[str, dict[str, Any]] = ("", {}), url: Any = URL) -> None:
        self.url = url
        self.event = event
        self.gone = asyncio.Event()
        self.refusal = refusal
        self.fulfilled: dict[str, Any] = {}
        self.listener: Any = None

    def listen(self, session: str, listener: Any) -> None:
        self.listener = listener

    def charge(self, name: str, budget: Any) -> None:
        """Nothing is limited here."""

    def say(self, method: str, session: str = "", /, **params: Any) -> int:
        if method == "Page.navigate":
            request = {"url": params["url"], "method": "GET"}
            paused = {"requestId": "1", "request": request, "resourceType": "Document", "frameId": "", "networkId": "1"}
            self.listener("Fetch.requestPaused", paused)
        return 0

    async def ask(self, method: str, session: str = "", /, **params: Any) -> dict[str, Any]:
        if method == "Fetch.fulfillRequest":
            self.fulfilled = params
            if self.refusal:
                raise CommandRefused(self.refusal)
            self.listener(*(self.event if self.event[0] else ("Page.loadEventFired", {})))
        return {"executionContextId": 1, "result": {"value": {"html": "<p>shown", "url": self.url}}}


def show(browser: Browser, headers: dict[str, str]) -> Rendered:
    async def main() -> Rendered:
        proxy = cast(PageProxy, type("Proxy", (), {"bytes": 0, "cut": set()}))
        limits = RenderLimits(seconds=3600, quiet_seconds=0.0)
        page = PageInBrowser(cast(Conversation, browser), Fetched(URL, 200, headers=headers, body=b"x"), limits, proxy)
        browser.listen("", page._heard)
        try:
            return await asyncio.wait_for(page.show("Silkline", "en"), 30)
        finally:
            page.close()

    return asyncio.run(main())


def test_only_headers_that_a_browser_takes_are_handed_on() -> None:
    browser = Browser()
    odd = {"x a": "1", "b@d": "1", "x-\xe9": "1", "x(1)": "1", "": "1", "x-nul": "a\0b"}
    rendered = show(browser, {"content-type": "text/html", **odd, "x-fine": "caf\xe9", "content-length": "1"})
    assert (rendered.reason, rendered.body) == (None, b"<p>shown")
    assert {each["name"] for each in browser.fulfilled["responseHeaders"]} == {"content-type", "x-fine"}


def test_an_answer_that_the_browser_refuses_fails_at_once_with_its_own_reason() -> None:
    rendered = show(Browser("Invalid header"), {"content-type": "text/html"})
    assert (rendered.reason, rendered.detail) == (RENDER_REFUSED, "Invalid header")


@pytest.mark.parametrize(
    "event",
    [
        ("Fetch.requestPaused", {}),
        ("Fetch.requestPaused", {"requestId": "2", "request": {"url": None, "method": "GET"}}),
        ("Network.requestWillBeSent", {"requestId": "2", "request": []}),
        ("Network.loadingFinished", {"requestId": []}),
        ("Page.frameNavigated", {"frame": None}),
        ("Page.frameRequestedNavigation", {"disposition": "currentTab"}),
    ],
)
def test_an_event_that_is_not_as_expected_costs_only_its_page(event: tuple[str, dict[str, Any]]) -> None:
    rendered = show(Browser(event=event), {"content-type": "text/html"})
    assert rendered.reason == RENDER_REFUSED
    assert rendered.detail.startswith(event[0])


def test_an_element_with_the_name_of_a_property_is_no_url() -> None:
    rendered = show(Browser(url={"0": {}}), {"content-type": "text/html"})
    assert (rendered.url, rendered.body) == (URL, b"<p>shown")

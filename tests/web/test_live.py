"""Answers that come late, or in another order than they were asked for: the page shows what is true all the same."""

import re
from collections.abc import Callable

from playwright.sync_api import APIResponse, Page, Route, expect

from tests.support.served import Client
from tests.support.supervisors import eventually
from tests.web.conftest import Open

ANSWERED = """() => {
    window.answered = [];
    const send = XMLHttpRequest.prototype.send;
    XMLHttpRequest.prototype.send = function (...given) {
        this.addEventListener("loadend", () => window.answered.push(this.responseURL));
        return send.apply(this, given);
    };
}"""


class Held:
    """The first request of its kind: the server has answered it, the browser has not been told."""

    def __init__(self, page: Page, wanted: Callable[[Route], bool]) -> None:
        self.page = page
        self._wanted = wanted
        self._first: tuple[Route, APIResponse] | None = None
        page.evaluate(ANSWERED)
        page.route("**/*", self._hold)

    def _hold(self, route: Route) -> None:
        if self._first is None and self._wanted(route):
            self._first = (route, route.fetch())
        else:
            route.continue_()

    def wait(self) -> None:
        self._until("the request is held", lambda: self._first is not None)

    def release(self) -> None:
        """Returns when the browser has made of it what it will."""
        assert self._first is not None
        route, response = self._first
        route.fulfill(response=response)
        self._until("its answer is taken", lambda: route.request.url in self.page.evaluate("window.answered"))

    def _until(self, what: str, check: Callable[[], bool]) -> None:
        def look() -> bool:
            self.page.wait_for_timeout(10)  # while it waits, Playwright handles what the browser asks for
            return check()

        eventually(what, look)


def asks(path: str, method: str = "GET", place: str = "") -> Callable[[Route], bool]:
    def wanted(route: Route) -> bool:
        request = route.request
        found = re.search(path, request.url) and request.method == method
        return bool(found) and place in ("", request.headers.get("hx-target"))

    return wanted


def waiting_job(site: Client) -> str:
    """One that nobody takes but us."""
    id: str = site.post("/v1/jobs", {"kind": "extension", "url": "https://live.test/"}).json["id"]
    return id


def claim(site: Client, id: str) -> dict[str, str]:
    """The header with the lease of this job; one that a failed test left behind is let go of."""
    while True:
        (taken,) = site.post("/v1/claims", {"kinds": ["extension"], "name": "test"}).json["items"]
        lease = {"Silkline_Lease": taken["lease"]}
        if taken["job"]["id"] == id:
            return lease
        site.post(f"/v1/jobs/{taken['job']['id']}/finish", {"end": "permanent"}, **lease)


def chip(page: Page, word: str) -> None:
    expect(page.locator("#head .chip")).to_have_text(word)


def live(page: Page) -> None:
    expect(page.locator("#link")).to_have_text("Live")


def test_a_second_change_while_the_first_is_being_drawn(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    page = visit(f"/jobs/{id}")
    live(page)
    head = Held(page, asks("/head$"))
    lease = claim(site, id)
    head.wait()
    site.post(f"/v1/jobs/{id}/finish", {"end": "permanent"}, **lease)
    expect(page).to_have_title(re.compile("failed"))
    head.release()
    chip(page, "failed")


def test_the_answer_to_a_button_comes_after_the_news(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    lease = claim(site, id)
    page = visit(f"/jobs/{id}")
    live(page)
    pressed = Held(page, asks("/pause$", "POST"))
    page.get_by_role("button", name="Pause").click()
    pressed.wait()
    site.post(f"/v1/jobs/{id}/finish", {"end": "paused"}, **lease)
    chip(page, "paused")
    pressed.release()
    assert page.locator("#head .chip").inner_text() == "paused"
    site.post(f"/v1/jobs/{id}/cancel")


def test_news_that_take_a_change_back_while_it_is_being_drawn(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    page = visit(f"/jobs/{id}")
    live(page)
    head = Held(page, asks("/head$"))
    site.post(f"/v1/jobs/{id}/pause")
    head.wait()
    site.post(f"/v1/jobs/{id}/resume")
    expect(page).to_have_title(re.compile("queued"))
    head.release()
    assert page.locator("#head .chip").inner_text() == "queued"
    site.post(f"/v1/jobs/{id}/cancel")


def test_the_end_is_counted_though_the_panels_were_being_drawn(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    lease = claim(site, id)
    page = visit(f"/jobs/{id}")
    live(page)
    panels = Held(page, asks("/overview$", place="panels-place"))
    site.post(f"/v1/jobs/{id}/results", {"pages": [{"url": "https://live.test/"}]}, **lease)
    panels.wait()
    site.post(f"/v1/jobs/{id}/finish", {"end": "completed"}, **lease)
    chip(page, "completed")
    panels.release()
    expect(page.locator("#panels")).to_contain_text("All hosts")


def test_a_tab_is_opened_though_the_one_before_is_being_drawn(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    page = visit(f"/jobs/{id}/hosts")
    live(page)
    hosts = Held(page, asks("/hosts$", place="tab-place"))
    lease = claim(site, id)
    hosts.wait()
    page.get_by_role("link", name="Details").click()
    expect(page.locator("#tab")).to_have_attribute("data-tab", "details")
    hosts.release()
    assert page.locator("#tab").get_attribute("data-tab") == "details"
    expect(page.locator("#tab")).to_contain_text("external-test")
    site.post(f"/v1/jobs/{id}/finish", {"end": "permanent"}, **lease)


def test_a_tab_that_comes_after_the_one_before_was_drawn_again(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    page = visit(f"/jobs/{id}/hosts")
    live(page)
    details = Held(page, asks("/details$"))
    page.get_by_role("link", name="Details").click()
    details.wait()
    with page.expect_response(re.compile("/hosts$")):
        lease = claim(site, id)
    chip(page, "running")
    details.release()
    expect(page.locator("#tab")).to_have_attribute("data-tab", "details")
    site.post(f"/v1/jobs/{id}/finish", {"end": "permanent"}, **lease)


def test_a_search_stays_though_the_list_was_being_drawn(visit: Open, site: Client) -> None:
    site.post("/v1/jobs", {"kind": "page", "url": "https://haystack.test/", "paused": True})
    site.post("/v1/jobs", {"kind": "page", "url": "https://pin.test/", "paused": True})
    page = visit("/")
    live(page)
    whole = Held(page, asks("/$", place="jobs-place"))
    site.post("/v1/jobs", {"kind": "page", "url": "https://more.test/", "paused": True})
    whole.wait()
    page.locator("#search").fill("pin.test")
    expect(page.locator("[data-row]")).to_have_count(1)
    whole.release()
    assert page.locator("[data-row]").count() == 1
    site.post("/v1/jobs", {"kind": "page", "url": "https://pin.test/two", "paused": True})
    expect(page.locator("[data-row]")).to_have_count(2)


def test_a_stream_that_ended_stays_ended_though_the_head_is_late(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    lease = claim(site, id)
    page = visit(f"/jobs/{id}")
    live(page)
    head = Held(page, asks("/head$"))
    site.post(f"/v1/jobs/{id}/finish", {"end": "permanent"}, **lease)
    head.wait()
    expect(page.locator("#link")).to_have_text("Ended")
    with page.expect_response(re.compile("/overview$")):
        page.get_by_role("link", name="Overview").click()  # something else is drawn
    chip(page, "running")
    expect(page.locator("#link")).to_have_text("Ended")
    head.release()
    chip(page, "failed")
    assert page.locator("#link").inner_text() == "Ended"


def test_a_button_works_as_soon_as_it_is_there(visit: Open, site: Client) -> None:
    id = waiting_job(site)
    page = visit(f"/jobs/{id}")
    live(page)
    page.evaluate("""() => {
        window.same = true;
        const press = () => document.querySelector('#head [data-verb="pause"]').click();
        const place = document.querySelector(".chip.queued");
        new MutationObserver((_, observer) => {
            if (place.isConnected) return;
            observer.disconnect();
            press();
        }).observe(document.querySelector("main"), {childList: true, subtree: true});
    }""")
    lease = claim(site, id)
    chip(page, "pausing")
    assert page.evaluate("window.same"), "the page was not loaded again"
    site.post(f"/v1/jobs/{id}/finish", {"end": "permanent"}, **lease)

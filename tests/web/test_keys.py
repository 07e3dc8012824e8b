"""The keyboard, the colours, filters in the address, and what is said when the connection is lost or the tab hidden."""

import re
import signal
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.support.daemon import free_port
from tests.support.served import Client, Served
from tests.web.conftest import PATIENCE, Open

HIDE = """hidden => {
    Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_keys(visit: Open, site: Client) -> None:
    ids = [site.job(do="nothing") for _ in range(3)][::-1]
    page = visit("/")
    expect(page.locator("[data-row]").first).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator("#new-url")).to_be_focused()
    page.keyboard.type("jjk")
    expect(page.locator("#new-url")).to_have_value("jjk")
    page.keyboard.press("Escape")
    for key in "jjk":
        page.keyboard.press(key)
    expect(page.locator(".chosen [data-open]")).to_have_attribute("href", f"/jobs/{ids[0]}")
    page.keyboard.press("j")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{ids[1]}")


def test_enter_opens_the_row_before_the_closed_help_gives_the_focus_back(visit: Open, site: Client) -> None:
    id = site.job(do="nothing")
    page = visit("/")
    page.keyboard.press("j")
    expect(page.locator(".chosen [data-open]")).to_have_attribute("href", f"/jobs/{id}")
    page.evaluate("""() => {
        const help = document.getElementById("help");
        help.showModal();
        help.close();
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
    }""")
    page.wait_for_url(f"**/jobs/{id}")


def test_the_chosen_row_stays_chosen_when_the_list_is_drawn_again(visit: Open, site: Client) -> None:
    site.job(do="nothing")
    page = visit("/")
    page.keyboard.press("j")
    chosen = page.locator(".chosen [data-open]").get_attribute("href")
    fresh = site.job(do="nothing")
    expect(page.locator(f'[data-open][href="/jobs/{fresh}"]')).to_be_visible()
    expect(page.locator(".chosen [data-open]")).to_have_attribute("href", str(chosen))


def test_filters_stand_in_the_address(visit: Open, site: Client) -> None:
    site.post("/v1/jobs", {"kind": "page", "url": "https://needle.test/", "paused": True})
    site.job(do="nothing")
    page = visit("/")
    page.locator("#search").fill("needle")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.wait_for_url(re.compile(r"q=needle"))
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("#search")).to_have_value("needle")
    page.get_by_role("link", name=re.compile("Paused")).click()
    page.wait_for_url(re.compile(r"status=paused"))
    expect(page.locator("[data-row]")).to_have_count(1)


def test_colours_are_remembered(visit: Open, site: Client) -> None:
    page = visit("/")
    page.locator("#theme").click()
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"http://127.0.0.1:{site.port}/workers")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.locator("#theme").click()
    expect(page.locator("html")).not_to_have_attribute("data-theme", re.compile(""))


def test_a_hidden_tab_rests_and_catches_up(visit: Open, site: Client) -> None:
    id = site.job(do="work", steps=100_000, seconds=0.02)
    page = visit(f"/jobs/{id}/logs")
    expect(page.locator("#link")).to_have_text("Live")
    expect(page.locator("#head .chip")).to_have_text("running")
    page.evaluate(HIDE, True)
    expect(page.locator("#link")).to_have_text("Paused while hidden")
    expect(page.locator(".htmx-request")).to_have_count(0)  # nor is anything from before still on its way
    site.post(f"/v1/jobs/{id}/stop")
    site.wait_for(id, "stopped")
    assert page.locator("#head .chip").inner_text() == "running", "a hidden tab is not told"
    page.evaluate(HIDE, False)
    expect(page.locator("#head .chip")).to_have_text("stopped")
    expect(page.locator("#log .line", has_text="the job is now stopped")).to_have_count(1)
    expect(page.locator("#log .line", has_text="attempt 1 started")).to_have_count(1)


def test_a_lost_connection_is_said_and_mended(browser: Browser, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'silkline.db'}"
    where = ("--port", str(free_port()))
    with closing(Served(url, tmp_path, *where, slots=0)) as server:
        client = server.ready()
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{client.port}/")
        expect(page.locator("#link")).to_have_text("Live")
        server.terminate(signal.SIGTERM)
        expect(page.locator("#link")).to_have_text("Connection lost, trying again…")
        with closing(Served(url, tmp_path, *where, slots=0)) as again:
            again.ready()
            expect(page.locator("#link")).to_have_text("Live")
        context.close()

"""A person starts a crawl on the page, sees it move, pauses, resumes and stops it, and reads what it brought."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.served import STATES, Client
from tests.support.supervisors import eventually
from tests.web.conftest import Open

Keep = Callable[[Page, str], None]


def count(page: Page, state: str) -> int:
    return int(page.locator(f'#head [data-count="{state}"]').inner_text().replace(",", ""))


def adds_up(page: Page) -> bool:
    """Read in one go, so that no event comes in between."""
    numbers = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('#head [data-count]')]
                 .map(e => [e.dataset.count, Number(e.textContent.replaceAll(',', ''))]))"""
    )
    return bool(numbers["discovered"] == sum(numbers.get(state, 0) for state in STATES))


def chip(page: Page, word: str) -> None:
    expect(page.locator("#head .chip")).to_have_text(word)


def test_the_first_crawl_is_one_click_away(visit: Open, keep: Keep) -> None:
    page = visit("/")
    expect(page.get_by_role("heading", name="Nothing crawled yet")).to_be_visible()
    keep(page, "first")
    page.get_by_role("button", name="Crawl the sample site").click()
    page.wait_for_url(re.compile("/jobs/"))
    eventually("it moves", lambda: count(page, "done") > 5)
    assert adds_up(page)
    keep(page, "running")
    chip(page, "completed")
    expect(page.locator("#link")).to_have_text("Ended")  # nothing moves any more
    assert adds_up(page)
    assert count(page, "failed") == 3, "a page that is lost, one that is gone, and a circle of redirects"
    assert count(page, "skipped") >= 1, "robots.txt keeps us out of the accounts"
    assert count(page, "discovered") == count(page, "done") + count(page, "failed") + count(page, "skipped")
    expect(page.locator("[data-chart=history] canvas")).to_be_visible()
    expect(page.locator("[data-chart=responses] canvas")).to_be_visible()
    expect(page.locator("#panels")).to_contain_text("http_404")
    keep(page, "completed")
    page.get_by_role("link", name="Pages", exact=True).click()
    expect(page.locator("#tab")).to_have_attribute("data-tab", "pages")
    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.locator("[data-chart=history] canvas")).to_be_visible()
    page.get_by_role("link", name="Errors").click()
    expect(page.locator(".group")).to_have_count(3)
    keep(page, "errors")
    page.locator("td.address a").first.click()
    expect(page.locator(".note")).to_contain_text("It failed after")
    page.go_back()
    with page.expect_navigation(url=re.compile("/jobs/[0-9a-f-]{36}$")):
        page.locator(".group", has_text="http_404").get_by_role("button", name="Retry these").click()
    expect(page.locator("#head .chip")).to_have_text(re.compile("failed"))
    expect(page.locator("#link")).to_have_text("Ended")
    for state in ("discovered", "failed"):  # that one, and nothing else
        expect(page.locator(f'#head [data-count="{state}"]')).to_have_text("1")


def test_a_page_with_its_markdown_and_its_links(visit: Open, site: Client, keep: Keep) -> None:
    (job,) = [job for job in site.get("/v1/jobs?kind=site").json["items"] if job["parent_id"] is None][:1]
    page = visit(f"/jobs/{job['id']}/pages")
    page.get_by_role("link", name="Birds of the rock", exact=True).click()
    expect(page.get_by_role("heading", name="Birds")).to_be_visible()
    expect(page.locator("pre.content")).to_contain_text("Arctic tern")
    expect(page.locator(".way")).to_contain_text("http://127.0.0.1:")
    expect(page.locator(".card", has_text="Links out")).to_contain_text("birds/puffin")
    expect(page.locator(".card", has_text="Links in").locator("li").first).to_contain_text("http://127.0.0.1:")
    keep(page, "page")


def test_the_overview_of_an_ended_crawl(visit: Open, site: Client) -> None:
    (job,) = [job for job in site.get("/v1/jobs?kind=site").json["items"] if job["parent_id"] is None][:1]
    page = visit(f"/jobs/{job['id']}")
    expect(page.locator('[data-chart="history"] .u-series')).to_have_count(3)
    expect(page.locator('[data-chart="history"]')).not_to_contain_text("expected")
    reasons = page.locator(".card", has_text="Failed and skipped")
    expect(reasons.locator("tr")).to_have_count(8)
    expect(reasons).to_contain_text("and 1 more, in the tabs Errors and Skipped")
    expect(page.get_by_role("link", name="All hosts")).to_be_visible()
    expect(page.get_by_role("heading", name="In flight")).to_have_count(0)


def test_pause_resume_stop_while_it_moves(visit: Open, site: Client) -> None:
    id = site.job(do="work", steps=100_000, seconds=0.02)
    page = visit(f"/jobs/{id}")
    chip(page, "running")
    before = count(page, "done")
    eventually("it moves", lambda: count(page, "done") > before)
    assert adds_up(page)
    page.get_by_role("button", name="Pause").click()
    chip(page, "paused")
    site.wait_for(id, "paused")
    page.get_by_role("button", name="Resume").click()
    chip(page, "running")
    page.keyboard.press("p")
    chip(page, "paused")
    page.keyboard.press("p")
    chip(page, "running")
    page.get_by_role("button", name="Stop").click()
    chip(page, "stopped")
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    expect(page.locator("#link")).to_have_text("Ended")
    assert adds_up(page)
    assert count(page, "done") == site.get(f"/v1/jobs/{id}").json["progress"]["done"]


def test_the_form_starts_a_crawl_and_says_what_is_wrong_with_it(visit: Open) -> None:
    page = visit("/")
    page.locator("#new-url").fill("http://")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("is not a web address")
    page.locator("#new-url").fill("example.invalid/somewhere")
    page.get_by_label("Page limit").fill("3")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}$"))
    expect(page.locator("#head h1")).to_have_text("https://example.invalid/somewhere")


def test_the_log_follows_filters_and_searches(visit: Open, site: Client, keep: Keep) -> None:
    id = site.job(do="exit", code=65, text="This can never work: \x1b[31m<b>red</b>")
    page = visit(f"/jobs/{id}/logs")
    expect(page.locator("#log")).to_contain_text("the job is now failed")
    expect(page.locator("#log")).to_contain_text("[31m<b>red</b>")
    assert page.locator("#log b").count() == 0
    keep(page, "log")
    page.get_by_label("Search the log").fill("diagnostic")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#log .line")).to_have_count(1)
    page.goto(f"http://127.0.0.1:{site.port}/jobs/{id}/logs?level=error")
    expect(page.locator("#log")).to_contain_text("This can never work")
    expect(page.locator("#log")).not_to_contain_text("diagnostic job")


def test_a_queued_job_says_that_it_waits(visit: Open, site: Client) -> None:
    id = site.post("/v1/jobs", {"kind": "extension", "url": "https://example.com/"}).json["id"]
    page = visit(f"/jobs/{id}")
    expect(page.locator("#head")).to_contain_text("Waiting for a worker…")
    chip(page, "queued")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_screen_fits(visit: Open, site: Client, keep: Keep, width: int, scheme: str) -> None:
    site.job(do="nothing")
    (job,) = site.get("/v1/jobs?kind=site").json["items"][-1:]
    places = {"jobs": "/", "fleet": "/fleet"}
    places |= {tab: f"/jobs/{job['id']}/{tab}" for tab in ("overview", "pages", "skipped", "hosts", "details")}
    page = visit("/login", width=width, height=800, scheme=scheme)
    keep(page, f"login-{scheme}")
    for name, path in places.items():
        page.goto(f"http://127.0.0.1:{site.port}{path}")
        page.wait_for_load_state("load")
        expect(page.locator("main")).not_to_be_empty()
        keep(page, f"{name}-{scheme}")
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    lightness = sum(int(number) for number in re.findall(r"\d+", background)[:3]) / 3
    assert (lightness > 128) is (scheme == "light")

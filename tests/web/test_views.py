"""What each view shows of a job, and what axe-core finds wrong with it: nothing."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from silkline.model.database import Database
from silkline.model.job import End, Job, NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.store.given import finished, running
from tests.support.served import Client, Served
from tests.web.conftest import Open
from tests.web.crawled import KIND, all_failed, large_crawl

Keep = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("views")
    with closing(Served(f"sqlite:///{folder / 'silkline.db'}", folder, slots=1, api_allow_private=True)) as server:
        server.ready()
        yield server


@pytest.fixture(scope="module")
def site(served: Served) -> Client:
    return served.ready()


@pytest.fixture(scope="module")
def database(served: Served) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{served.data / 'silkline.db'}")) as database:
        yield database


@pytest.fixture(scope="module")
def crawl(database: Database) -> Job:
    return large_crawl(database)


def shown(page: Page) -> list[str]:
    """The addresses of the list, in its order."""
    return [text.split("/")[-1][:20] for text in page.locator("table.pages td.address:first-child").all_inner_texts()]


def beside(page: Page, label: str) -> Locator:
    """The message beside a field."""
    field = page.get_by_label(label)
    expect(field).to_have_attribute("aria-invalid", "true")
    return page.locator(f"#{field.get_attribute('aria-describedby')}")


def test_other_hosts_are_no_unfinished_work(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}/hosts")
    own, other = page.locator("table").all()
    expect(own.locator("tr[data-row]")).to_have_count(1)
    expect(own).to_contain_text("site.test")
    expect(page.locator("#tab")).to_contain_text("out of scope, so the crawl fetches nothing from them")
    expect(other).to_contain_text("other.test")
    page.goto(page.url.replace("/hosts", ""))
    expect(page.locator("#panels")).to_contain_text("not part of this crawl")
    expect(page.locator("#panels")).not_to_contain_text("0 of")
    page.goto(page.url.partition("/jobs")[0])
    expect(page.locator(".row", has_text="site.test")).to_contain_text("38 of 40")


def test_nothing_is_said_of_pages_that_did_not_change(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}")
    for tab in ("Overview", "Pages", "Hosts", "Details"):
        page.get_by_role("link", name=tab, exact=True).click()
        expect(page.locator("#tab")).to_have_attribute("data-tab", tab.lower())
        expect(page.locator("main")).not_to_contain_text("unchanged", ignore_case=True)


def test_the_chart_has_a_gap_where_the_job_was_paused(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}")
    expect(page.locator("[data-chart=history] canvas")).to_be_visible()
    history = page.evaluate("window.silkline.charts.shown()")
    (gap,) = [place for place, done in enumerate(history["done"]) if done is None]
    assert history["at"][gap + 1] - history["at"][gap - 1] == 3600
    assert history["discovered"][gap] is None
    assert None not in history["at"]
    # The same is drawn when the news of the end of a pause come while somebody looks.
    news = {"updated_at": "2099-01-01T00:00:00Z", "seconds": 51, "discovered": 1, "done": 1, "unchanged": 0}
    # One call: the end of the event stream may load the history again between two calls.
    shown = "news => { window.silkline.charts.add(news); return window.silkline.charts.shown().done.at(-2); }"
    assert page.evaluate(shown, {**news, "failed": 0, "skipped": 0, "eta_seconds": None}) is None


def test_content_comes_before_links(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}/page/1")
    assert page.locator("h2").all_inner_texts()[0] == "Content"
    names = [name.split()[0] for name in page.locator("h2").all_inner_texts()[:5]]
    assert names == ["Content", "Facts", "Path", "Links", "Links"]
    out = page.locator(".card", has_text="Links out")
    expect(out.locator("li").first).to_be_hidden()
    out.locator("summary").click()
    expect(out.locator("li").first).to_be_visible()


def test_pages_have_title_size_and_time_and_can_be_sorted(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}/pages?state=done")
    row = page.locator("tr[data-row]", has_text="p/6")
    for text in ("Tern", "6.0 kB", "4400 ms"):
        expect(row).to_contain_text(text)
    page.get_by_role("columnheader", name="Time").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Time")).to_have_attribute("aria-sort", "descending")
    assert shown(page)[1:3] == ["2", "3"]
    page.get_by_role("columnheader", name="Size").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Size")).to_have_attribute("aria-sort", "descending")
    assert shown(page)[1] == "37"
    page.get_by_role("columnheader", name="Size").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Size")).to_have_attribute("aria-sort", "ascending")
    assert shown(page)[1] == "2"
    page.go_back()
    expect(page.get_by_role("columnheader", name="Size")).to_have_attribute("aria-sort", "descending")
    page.reload()
    assert shown(page)[1] == "37"


def test_pages_are_searched_by_address_and_title(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}/pages")
    page.keyboard.press("/")
    page.keyboard.type("tERN")
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert shown(page) == ["6"]
    page.get_by_label("Search URLs and titles").fill("host14")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tr[data-row]")).to_have_count(7)
    page.get_by_label("Search URLs and titles").fill("no such page")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#tab")).to_contain_text("No page matches.")
    page.goto(f"{page.url.partition('/jobs')[0]}/jobs/{crawl.id}/pages?at=nonsense")
    expect(page.get_by_role("heading")).to_have_text("The request is not valid")


def test_downloads_stand_on_the_job_itself(visit: Open, crawl: Job, tmp_path: Path) -> None:
    page = visit(f"/jobs/{crawl.id}")
    links = page.locator("#head .exports a")
    assert links.all_inner_texts() == [
        *("JSON lines", "CSV", "Markdown (zip)", "Parquet", "Sitemap", "Links", "Chunks"),
    ]
    with page.expect_download() as download:
        links.nth(1).click()
    assert download.value.suggested_filename == f"site.test-{crawl.id[-8:]}.csv"
    download.value.save_as(tmp_path / "pages.csv")
    assert "Tern" in (tmp_path / "pages.csv").read_text()


@pytest.mark.parametrize("end", [End.COMPLETED, End.PERMANENT])
def test_no_green_badge_and_no_rate_where_everything_failed(visit: Open, database: Database, end: End) -> None:
    job = all_failed(database, end)
    page = visit(f"/jobs/{job.id}")
    expect(page.locator("#head .chip")).to_have_class(re.compile("failed"))
    expect(page.locator("#head [data-gauge=rate]")).to_have_text("\N{EN DASH}")
    page.goto(page.url.partition("/jobs")[0])
    expect(page.locator(".row", has_text="nosuch.test").first.locator(".chip")).to_have_class(re.compile("failed"))


def test_a_job_about_a_query_shows_it(visit: Open, database: Database) -> None:
    asked = 'bluesky search: "cats & <b>dogs</b>" javascript:alert(1)'
    new = NewJob("extension", {"url": "https://example.com/"}, request_url=asked)
    job, _ = jobs.enqueue(database, new)
    page = visit(f"/jobs/{job.id}")
    expect(page.locator("#head h1")).to_have_text(asked)
    expect(page.locator("#head h1 a")).to_have_count(0)
    expect(page).to_have_title(re.compile("bluesky search"))
    page.goto(page.url.partition("/jobs")[0])
    expect(page.locator(".row-link", has_text="cats & <b>dogs</b>")).to_have_attribute("href", f"/jobs/{job.id}")
    page.goto(f"{page.url}workers")
    expect(page.get_by_role("heading", name="Workers")).to_be_visible()


def test_the_fleet_shows_machines_queue_and_processes(visit: Open, site: Client, database: Database) -> None:
    id = site.job(do="work", steps=100_000, seconds=0.02, cpus=1)
    jobs.enqueue(database, NewJob("telegraph", {}))
    try:
        page = visit("/fleet")
        (machine,) = site.get("/v1/fleet").json["machines"]
        row = page.get_by_role("region", name="Machines and workers").locator("tbody tr")
        expect(row).to_contain_text(f"{machine['host']}{machine['workers'][0]}")
        expect(row).to_contain_text(f"on {machine['cores']} core")
        expect(row).to_contain_text("of 1 slot")
        waiting = page.get_by_role("region", name="Queue").locator("tbody tr", has_text="telegraph")
        expect(waiting.locator("[data-name=due]")).not_to_have_text("0")
        card = page.locator("section.card", has=page.locator(f'a[href="/jobs/{id}"]'))
        # The page draws itself again: nobody reloads it.
        expect(card.locator(".processes tbody tr")).to_have_count(1, timeout=60_000)
        expect(card.locator(".processes tbody td").first).to_have_text("runner")
        expect(card).to_contain_text("of 1 cores")
        page.goto(f"{page.url.removesuffix('fleet')}jobs/{id}/details")
        expect(page.locator(".processes tbody td").first).to_have_text("runner")
    finally:
        site.post(f"/v1/jobs/{id}/cancel")


def test_a_job_of_a_kind_that_nobody_knows_says_why_it_waits(visit: Open, database: Database) -> None:
    job, _ = jobs.enqueue(database, NewJob("telegraph", {}))
    page = visit(f"/jobs/{job.id}")
    expect(page.locator("#head")).to_contain_text("telegraph")
    expect(page.locator("#head .problem")).to_contain_text("No running worker knows the kind telegraph")
    page.get_by_role("link", name="Logs").click()
    expect(page.locator("#waiting")).to_contain_text("No running worker knows the kind telegraph")


def test_crawl_again_fills_the_form_in(visit: Open, site: Client, database: Database) -> None:
    spec = {
        **{"url": "http://127.0.0.1:9/", "urls": ["http://127.0.0.1:9/b"], "limit": 7, "scope": "domain", "delay": 0.5},
        **{"include": ["/a"], "exclude": ["/b", "/c"], "allow_private": ["127.0.0.1:9"], "user_agent": "Tester/1"},
        **{"headers": {"X-Secret": "hush-hush"}, "speed": "fast"},
    }
    job, _ = jobs.enqueue(database, NewJob("site", spec, request_url="http://127.0.0.1:9/", paused=True))
    site.post(f"/v1/jobs/{job.id}/cancel")
    page = visit(f"/jobs/{job.id}")
    page.get_by_role("link", name="Crawl again").click()
    expect(page.get_by_label("URL", exact=True)).to_have_value("http://127.0.0.1:9/")
    for label, value in {
        "Page limit": "7",
        "Stay within": "domain",
        "Delay in seconds": "0.5",
        "More URLs": "http://127.0.0.1:9/b",
        "Only URLs that match": "/a",
        "No URLs that match": "/b\n/c",
        "Private addresses": "127.0.0.1:9",
        "Headers to send": "",
    }.items():
        expect(page.get_by_label(label)).to_have_value(value)
    assert "hush" not in page.content()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}$"))
    again = jobs.get(database, page.url.rpartition("/")[2])
    assert again.id != job.id
    assert again.payload == spec
    site.post(f"/v1/jobs/{again.id}/cancel")


def test_messages_stand_beside_their_fields(visit: Open) -> None:
    page = visit("/")
    page.locator("summary", has_text="Options").click()
    page.get_by_label("URL", exact=True).fill("example.com")
    page.get_by_label("Only URLs that match").fill("/docs/\n(")
    page.get_by_label("More URLs").fill("ftp://example.org")
    page.get_by_role("button", name="Start").click()
    expect(beside(page, "Only URLs that match")).to_contain_text("Line 2 is not a regular expression")
    expect(beside(page, "More URLs")).to_contain_text("Line 1 must start with http")
    expect(page.get_by_label("Only URLs that match")).to_have_value("/docs/\n(")
    assert Axe().run(page).response["violations"] == []


def test_a_private_site_can_be_crawled_where_the_operator_allows_it(visit: Open, site: Client) -> None:
    page = visit("/")
    page.locator("#new-url").fill("localhost:9")
    page.get_by_role("button", name="Start").click()
    expect(beside(page, "Private addresses")).to_contain_text("http://localhost:9 is a private address: list it here")
    page.get_by_label("Private addresses").fill("127.0.0.1:9")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}$"))
    id = page.url.rpartition("/")[2]
    assert site.get(f"/v1/jobs/{id}").json["spec"]["allow_private"] == ["127.0.0.1:9"]


def test_a_job_that_never_ran_has_a_breadcrumb_and_no_charts(
    visit: Open, database: Database, crawl: Job, keep: Keep
) -> None:
    job = running(database, kind=KIND)
    finished(database, job, End.PERMANENT, reason="never ran")
    page = visit(f"/jobs/{job.id}", width=390, height=800)
    expect(page.locator(".crumbs span")).to_have_text(f"{KIND} job")
    expect(page.locator("#panels")).to_be_visible()
    expect(page.locator("[data-chart]")).to_have_count(0)
    keep(page, "never-ran")
    page.goto(page.url.replace(job.id, crawl.id))
    expect(page.locator(".crumbs span")).to_have_text(str(crawl.request_url))
    expect(page.locator("[data-chart]")).to_have_count(3)


def test_every_tab_is_seen_on_a_narrow_screen(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}", width=390, height=800)
    for tab in page.locator(".tabs a").all():
        box = tab.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390, tab.inner_text()


# In dark colours the same page is looked at once more by the rules that look at colours.
LOOK_AT: dict[str, dict[str, Any]] = {
    "light": {"resultTypes": ["violations"]},
    "dark": {
        "resultTypes": ["violations"],
        "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
    },
}
TABS = ("overview", "pages", "pages?sort=-size", "errors", "skipped", "hosts", "logs", "details", "page/1", "page/40")


def faults(page: Page, scheme: str) -> list[tuple[str, list[str]]]:
    """What axe-core finds wrong with the page in these colours, and the elements."""
    page.emulate_media(color_scheme=scheme)
    found = Axe().run(page, options=LOOK_AT[scheme]).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


# Colours do not depend on the width.
@pytest.mark.parametrize(("width", "schemes"), [(390, ["light", "dark"]), (1280, ["light"])])
def test_axe_finds_nothing_wrong_with_any_view(
    visit: Open, crawl: Job, database: Database, keep: Keep, width: int, schemes: Sequence[str]
) -> None:
    failed = all_failed(database, End.PERMANENT)
    waits, _ = jobs.enqueue(database, NewJob("telegraph", {}))
    page = visit("/login", width=width, height=800)
    root = page.url.removesuffix("/login")
    paths = ["/login", "/", "/fleet", *(f"/jobs/{crawl.id}/{tab}" for tab in TABS)]
    paths += [f"/jobs/{failed.id}", f"/jobs/{waits.id}/logs", f"/?again={crawl.id}"]
    for path in paths:
        page.goto(root + path)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        name = re.sub(r"\W+", "-", path.replace(crawl.id, "")).strip("-") or "start"
        for scheme in schemes:
            assert faults(page, scheme) == [], (path, width, scheme)
            keep(page, f"axe-{name[:40]}-{scheme}")
    page.get_by_role("button", name="Keyboard help").click()
    assert [faults(page, scheme) for scheme in LOOK_AT] == [[], []]


def test_the_fields_of_the_form_stand_in_one_line(visit: Open) -> None:
    page = visit("/")
    page.locator("summary", has_text="Options").click()
    fields = page.locator(".options").first.locator("input, select")
    expect(fields).to_have_count(7)
    boxes = [field.bounding_box() for field in fields.all()]
    assert len({(box["y"], box["height"]) for box in boxes if box}) == 1, boxes


def test_further_lines_of_a_log_line_begin_below_its_text(visit: Open, crawl: Job) -> None:
    page = visit(f"/jobs/{crawl.id}/logs")
    left = page.locator("#log .line").last.evaluate(
        """line => {
            const rects = [...line.querySelector(".text").getClientRects()];
            return rects.map((rect) => Math.round(rect.left));
        }"""
    )
    assert len(left) > 1
    assert left[1] > page.locator("#log").bounding_box()["x"] + 60  # type: ignore[index]

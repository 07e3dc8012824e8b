"""Why is it slow? The page says so, in words, while the crawl waits."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from silkline.model.job import NewJob
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer, answer
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.served import Client, Served
from tests.web.conftest import Open

Keep = Callable[[Page, str], None]
SLOW = b"User-agent: *\nCrawl-delay: 25\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server, with a crawl that waits: its host asks for a lot of time between two pages."""
    folder = tmp_path_factory.mktemp("slow")
    url = f"sqlite:///{folder / 'silkline.db'}"

    def patient(target: str, origin: str) -> SampleAnswer:
        return SampleAnswer(200, "text/plain", SLOW) if target == "/robots.txt" else answer(target, origin)

    with SampleServer(respond=patient) as slow, closing(Served(url, folder)) as server:
        client = server.ready()
        with closing(open_database(url)) as database:
            payload = {"url": slow.url, "allow_private": ["127.0.0.0/8"], "fetchers": 1}
            jobs.enqueue(database, NewJob("site", payload, request_url=slow.url))
        yield client


def the_crawl(site: Client) -> str:
    (job,) = site.get("/v1/jobs").json["items"]
    id: str = job["id"]
    return id


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_hosts_say_why_they_wait(visit: Open, site: Client, keep: Keep, width: int, scheme: str) -> None:
    page = visit(f"/jobs/{the_crawl(site)}/hosts", width=width, height=800, scheme=scheme)
    row = page.locator("tr[data-row]", has_text="127.0.0.1:")
    expect(row).to_contain_text("robots.txt asks for 25 s between pages")
    expect(row).to_contain_text(re.compile(r"next page (in \d+ s|any moment)"))
    keep(page, f"waiting-{scheme}")


def test_the_time_that_is_left_runs_down(visit: Open, site: Client) -> None:
    page = visit(f"/jobs/{the_crawl(site)}/hosts")
    left = page.locator("[data-left]")
    expect(left).to_contain_text("next page in")
    seen = left.inner_text()
    expect(left).not_to_have_text(seen)


def test_the_log_says_what_the_job_waits_for(visit: Open, site: Client) -> None:
    page = visit(f"/jobs/{the_crawl(site)}/logs")
    expect(page.locator("#waiting")).to_contain_text("Waiting for one host:")
    expect(page.locator("#waiting")).to_contain_text("robots.txt asks for 25 s between pages")
    site.post(f"/v1/jobs/{the_crawl(site)}/pause")
    expect(page.locator("#waiting")).to_contain_text("This job is paused. Resume it to continue.")
    site.post(f"/v1/jobs/{the_crawl(site)}/resume")
    expect(page.locator("#waiting")).to_contain_text("robots.txt asks for 25 s between pages")


def test_the_overview_leads_there(visit: Open, site: Client) -> None:
    page = visit(f"/jobs/{the_crawl(site)}")
    expect(page.locator("#panels")).to_contain_text("robots.txt asks for 25 s between pages")
    page.get_by_role("link", name="Why is it slow?").click()
    expect(page.locator("#tab")).to_have_attribute("data-tab", "hosts")

"""A crawl in several shards on the page: one crawl, and a tab that shows its shards."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from silkline.model.job import NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.crawl.harness import SyntheticWeb
from tests.support.postgres import PostgresDatabases
from tests.support.served import Client, Served
from tests.web.conftest import Open

Keep = Callable[[Page, str], None]
SHARDS = 3


@pytest.fixture(scope="module")
def site(postgres: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server on PostgreSQL, with a crawl that does not end while it is looked at."""
    url = postgres.create_database()
    web = SyntheticWeb(hosts=12, pages=10)
    with closing(web), closing(Served(url, tmp_path_factory.mktemp("shards"), slots=SHARDS)) as server:
        client = server.ready()
        payload = {"url": web.start, "scope": "any", "content": "none", "shards": SHARDS, "delay": 30, "speed": "max"}
        with closing(open_database(url)) as database:
            allowed = {"allow_private": ["127.0.0.0/8"], "ignore_robots": True}
            jobs.enqueue(database, NewJob("site", {**payload, **allowed}, request_url=web.start))
        yield client
    postgres.drop_database(url)


def test_the_shards_of_a_crawl_are_shown(visit: Open, site: Client, keep: Keep) -> None:
    (job,) = site.get("/v1/jobs").json["items"]
    page = visit(f"/jobs/{job['id']}")
    page.get_by_role("link", name="Shards", exact=True).click()
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(SHARDS)
    for number in range(SHARDS):  # the tab follows the crawl without a click
        row = rows.nth(number)
        expect(row.locator("[data-name=status]")).to_contain_text("running")
        expect(row.locator("[data-name=done]")).to_have_text(re.compile(r"[1-9]"))
        expect(row.locator("[data-name=share]")).to_have_text(re.compile(r"[1-9]\d? %"))
    parts = site.get(f"/v1/jobs/{job['id']}/shards").json["items"]
    assert {part["host"] for part in parts} == {rows.nth(0).locator("[data-name=machine]").inner_text()}
    keep(page, "shards-light")
    for width, scheme in ((1280, "dark"), (390, "light"), (390, "dark")):
        narrow = visit(f"/jobs/{job['id']}/shards", width=width, scheme=scheme)
        expect(narrow.locator("tr[data-row]")).to_have_count(SHARDS)
        keep(narrow, f"shards-{scheme}")
    # Not a click: the live tab may replace the row at that moment.
    page.goto(page.url.split("/jobs/")[0] + (rows.nth(1).get_by_role("link").first.get_attribute("href") or ""))
    expect(page.locator("#head .facts")).to_contain_text("shard 1 of this crawl")
    expect(page.locator("#head .buttons button")).to_have_count(0)
    page.goto(page.url.split("/jobs/")[0] + f"/jobs/{job['id']}")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#head")).to_have_attribute("data-status", "paused")
    stopped = site.get(f"/v1/jobs/{job['id']}/shards").json["items"]
    assert {part["status"] for part in stopped} == {"paused"}

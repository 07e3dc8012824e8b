"""What people are shown of jobs and workers is what is so: who lives, how many jobs they hold, why a job waits."""

import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.store import jobs, workers
from silkline.store.identity import Identity
from silkline.store.opening import open_database
from tests.acceptance.conftest import Silkline


@pytest.fixture
def database(on_both: Silkline) -> Iterator[Database]:
    with closing(open_database(on_both.database_url)) as database:
        yield database


def register(database: Database, id: str, kinds: tuple[str, ...] = ("page",)) -> None:
    workers.register(database, id=id, host="h", pid=1, boot_id="b", slots=2, version="1", kinds=kinds)


def test_dead_workers_leave_the_list_and_the_living_show_the_jobs_they_hold(
    on_both: Silkline, database: Database
) -> None:
    register(database, "living")
    register(database, "silent")
    killed = Identity(on_both.folder / "data")
    register(database, killed.id)
    killed.close(in_order=False)
    long_ago = "2020-01-01T00:00:00+00:00"
    with database.transaction() as transaction:
        transaction.script(f"UPDATE workers SET last_seen = '{long_ago}' WHERE id = 'silent'")
    jobs.enqueue(database, NewJob("page", {"url": "https://example.com/"}))
    jobs.claim(database, "living", "h", ["page"], 1)
    (shown,) = on_both("workers", "--json").json
    assert (shown["id"], shown["jobs_held"], shown["slots"]) == ("living", 1, 2)
    lines = on_both("workers").out.splitlines()
    assert len(lines) == 2, lines
    assert "1/2" in lines[1].split()


def test_a_job_of_a_kind_that_nobody_knows_says_so(on_both: Silkline, database: Database) -> None:
    job, _ = jobs.enqueue(database, NewJob("word_count", {"url": "https://example.com/"}))
    assert "No worker is running" in on_both("jobs", "show", job.id).out
    register(database, "living")
    register(database, "a-crawl-at-a-terminal", kinds=())
    assert "No running worker knows the kind word_count" in on_both("jobs", "show", job.id).out
    assert "word_count" in on_both("jobs", "show", job.id, "--json").json["waits_for"]
    register(database, "with-the-plugin", kinds=("word_count",))
    assert "No running worker" not in on_both("jobs", "show", job.id).out
    running = jobs.claim(database, "with-the-plugin", "h", ["word_count"], 1)
    assert [each.id for each in running] == [job.id]
    assert on_both("jobs", "show", job.id, "--json").json["waits_for"] is None


PAGES = {"/": "<a href=/old>old</a> <a href=/new>new</a>", "/new": "<h1>Here</h1><p>Words of the new page.</p>"}
MOVED = {"/old": "/older", "/older": "/new"}


class RedirectingSite:
    """/ links to /old and to /new; /old redirects to /older, and that to /new."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                body = PAGES.get(self.path, "").encode()
                self.send_response(301 if self.path in MOVED else 200 if body else 404)
                if self.path in MOVED:
                    self.send_header("Location", MOVED[self.path])
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.parametrize("kind", ["site", "page"])
def test_the_cache_finds_a_page_under_every_name_that_leads_to_it(on_both: Silkline, kind: str) -> None:
    with closing(RedirectingSite()) as site:
        first = ("crawl", f"{site.url}/", "--speed", "max") if kind == "site" else ("fetch", f"{site.url}/old")
        done = on_both(*first)
        assert done.code == 0, done
        names = ("/old", "/older", "/new") if kind == "site" else ("/old", "/new")
        site.asked.clear()
        for name in names:
            found = on_both("fetch", site.url + name, "--max-age", "1d")
            assert "Words of the new page." in found.out, found
        assert site.asked == []


def test_a_redirect_that_was_seen_with_somebodys_own_headers_serves_nobody_else(on_both: Silkline) -> None:
    with closing(RedirectingSite()) as site:
        on_both("crawl", f"{site.url}/", "--speed", "max", "--header", "Cookie: me")
        site.asked.clear()
        assert "Words of the new page." in on_both("fetch", f"{site.url}/old", "--max-age", "1d").out
        assert "/old" in site.asked

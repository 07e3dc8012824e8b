"""What is no URL is refused before a job exists; a job that stored nothing because its seeds failed has failed."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from silkline.model.database import Database
from silkline.model.job import Job, Status
from silkline.store import jobs, logs
from silkline.store.opening import open_database
from tests.acceptance.conftest import Silkline


@contextmanager
def site(pages: dict[str, str], port: int = 0) -> Iterator[int]:
    """A server for a few pages; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/plain" if self.path.endswith(".txt") else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    """A port at which nobody listens."""
    with closing(socket.socket()) as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


@pytest.fixture
def database(silkline: Silkline) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{silkline.folder / 'data' / 'silkline.db'}")) as database:
        yield database


def last(database: Database) -> Job:
    return jobs.find(database, "last")


@pytest.mark.parametrize(
    "wrong",
    [
        ("crawl", "notaurl"),
        ("crawl", "javascript:alert(1)"),
        ("fetch", "mailto:me@example.com"),
        ("map", "http://[::1/"),
        ("crawl", "http://host:99999/"),
        ("crawl", "https://example.com/", "--proxy", "foo"),
        ("fetch", "https://example.com/", "--proxy", "ftp://127.0.0.1:21"),
        ("map", "https://example.com/", "--proxy", "http://"),
    ],
    ids=" ".join,
)
def test_what_is_no_url_is_refused_before_a_job_exists(
    silkline: Silkline, database: Database, wrong: tuple[str, ...]
) -> None:
    silkline(*wrong).refused(2)
    assert jobs.page(database) == []


@pytest.mark.parametrize(
    ("command", "where"),
    [("crawl", "no such host"), ("crawl", "refused"), ("fetch", "no such host"), ("fetch", "404"), ("map", "refused")],
)
def test_a_job_whose_every_seed_failed_has_failed(
    silkline: Silkline, database: Database, command: str, where: str
) -> None:
    with site({}) as port:
        address = {
            "no such host": "http://nosuch.invalid/",
            "refused": f"http://127.0.0.1:{free_port()}/",
            "404": f"http://127.0.0.1:{port}/missing.xml",
        }[where]
        done = silkline(command, address)
    assert done.code == 1, done
    job = last(database)
    assert (job.status, job.exit_reason) == (Status.FAILED, "every seed failed")
    assert address in str(job.error_message)


def test_one_stored_seed_is_enough(silkline: Silkline, database: Database) -> None:
    with site({"/": "<h1>Here</h1><p>Some words.</p>"}) as port:
        done = silkline("crawl", f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{free_port()}/")
    assert done.code == 0, done
    assert last(database).status is Status.COMPLETED


def test_a_crawl_that_may_fetch_nothing_is_completed_and_says_so(silkline: Silkline, database: Database) -> None:
    with site({"/robots.txt": "User-agent: *\nDisallow: /\n", "/": "<p>Words.</p>"}) as port:
        done = silkline("crawl", f"http://127.0.0.1:{port}/")
    assert done.code == 0, done
    assert "Nothing was stored" in done.err
    said = "\n".join(line.message for line in logs.page(database, last(database).id))
    assert "every seed was skipped" in said
    assert "robots" in said


def test_a_retry_tries_the_failed_seeds_again(silkline: Silkline, database: Database) -> None:
    port = free_port()
    assert silkline("crawl", f"http://127.0.0.1:{port}/").code == 1
    with site({"/": "<h1>Here</h1><p>Some words.</p>"}, port):
        assert silkline("jobs", "retry", "last").code == 0
        done = silkline("resume", "last")
    assert done.code == 0, done
    assert "Some words." in silkline("results", "last").out

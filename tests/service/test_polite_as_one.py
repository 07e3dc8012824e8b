"""All jobs of a database are polite as one, whatever process they run in: the log of the server itself says so."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from silkline.model.host_wait import BOOKED, waits_in
from silkline.model.job import NewJob, Status, Verb
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import bookings, jobs, urls
from silkline.store.bookings import Asked
from tests.support.supervisors import Yard, eventually
from tests.support.supervisors import yard as open_yard

HTML = "text/html; charset=utf-8"
DELAY = 0.1
LONG_DELAY = 0.5
PAGES = 5
ROW = 8


class Site:
    """One host that keeps a log of its requests."""

    def __init__(self) -> None:
        self.log: list[tuple[float, str]] = []
        self._server = SampleServer(respond=self._respond)

    def __enter__(self) -> "Site":
        self._server.__enter__()
        self.url = self._server.url
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        self.log.append((time.monotonic(), target))
        if target == "/robots.txt":
            return SampleAnswer(404, HTML, b"")
        links = "".join(f'<a href="/{number}">x</a>' for number in range(1, PAGES))
        return SampleAnswer(200, HTML, f"<title>A page</title><p>Words.</p>{links}".encode())


def crowds(log: list[tuple[float, str]], delay: float = DELAY) -> list[list[str]]:
    """Requests in a row that came much closer to each other than the delay.

    A row of several, because the server may notice a single request late when the machine is busy.
    """
    least = 0.75 * (ROW - 1) * delay
    rows = [log[place : place + ROW] for place in range(len(log) - ROW + 1)]
    return [[path for _, path in row] for row in rows if row[-1][0] - row[0][0] < least]


def add(yard: Yard, kind: str, url: str, **more: Any) -> str:
    given = {"url": url, "speed": "fast", "delay": DELAY, "allow_private": ["127.0.0.0/8"], **more}
    return jobs.enqueue(yard.database, NewJob(kind, given, request_url=url))[0].id


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


@pytest.mark.both_databases
def test_two_crawls_and_many_pages_take_turns_on_a_host(database_url: str, tmp_path: Path, site: Site) -> None:
    with open_yard(database_url, tmp_path) as yard:
        crawls = [add(yard, "site", site.url, fetchers=1) for _ in range(2)]
        yard.start(slots=6)
        eventually("a crawl has begun", lambda: site.log)
        pages = [add(yard, "page", f"{site.url}page{number}") for number in range(4)]
        ended = yard.wait_for_end(crawls + pages)
        assert {job.status for job in ended} == {Status.COMPLETED}
    paths = [path for _, path in site.log]
    assert paths.count("/1") == 2, "both crawls fetched it"
    assert len([path for path in paths if path.startswith("/page")]) == 4
    assert crowds(site.log) == []
    assert site.log[-1][0] - site.log[0][0] > 0.98 * (len(site.log) - 1) * DELAY


def test_without_the_booking_the_log_shows_a_crowd(tmp_path: Path, site: Site) -> None:
    """Jobs in three databases share nothing, so this is what the test above would see without bookings.

    The delay is longer: a busy machine alone may send three times as slowly as the jobs would.
    """
    with ExitStack() as stack:
        yards = [stack.enter_context(open_yard(f"sqlite:///{tmp_path / name}.db", tmp_path / name)) for name in "abc"]
        for yard in yards:  # all of them run before the first job is there, or one could be done before the next begins
            yard.ready(yard.start(slots=6))
        ids = [
            (yard, add(yard, "site", f"{site.url}{number}", fetchers=1, delay=LONG_DELAY))
            for number, yard in enumerate(yards)
        ]
        pages = [f"{site.url}page{number}" for number in range(4)]
        ids += [(yard, add(yard, "page", url, delay=LONG_DELAY)) for yard in yards for url in pages]
        for yard, id in ids:
            yard.wait_for_end([id])
    assert crowds(site.log, LONG_DELAY)


def test_a_job_says_for_whom_it_waits_and_gives_its_time_back_when_it_is_paused(tmp_path: Path, site: Site) -> None:
    slow = {"speed": "polite", "delay": 60}
    with open_yard(f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path) as yard:
        first = add(yard, "site", site.url, **slow)
        yard.start(slots=2)
        eventually("the crawl has begun", lambda: site.log)
        page = add(yard, "page", f"{site.url}page", **slow)
        (wait,) = eventually("it waits", lambda: waits_in(urls.counts(yard.database, page).live))
        assert (wait.reason, wait.detail) == (BOOKED, first)
        assert [path for _, path in site.log] == ["/robots.txt"]
        command = [sys.executable, "-m", "silkline", "explain", page, f"{site.url}page"]
        environment = {**os.environ, "SILKLINE_DATABASE_URL": yard.url}
        said = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert f"job {first} fetches from it first" in said.stdout
        jobs.wish(yard.database, page, Verb.PAUSE)
        yard.wait_for(page, Status.PAUSED)
        ((booked,), _) = bookings.book(yard.database, page, [Asked(wait.host, 1, 60.0, 0.0)], {})
        assert booked.starts < 70, "behind the crawl only"

"""Batches of pages under a real supervisor: one result for each URL, whatever happens on the way."""

import os
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from silkline.model.job import NewJob, Status, Verb
from silkline.model.url import url_key
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, results, urls
from tests.support.supervisors import Yard, eventually

HTML = "text/html; charset=utf-8"
# Nothing here is about heartbeats, which a loaded machine may be late with.
PATIENT = {"fence_after": 60.0, "stale_after": 90.0}


class GatedWeb:
    """Answers any path; those beyond the first `free` wait for the gate."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.gate = threading.Event()
        self.server = SampleServer(respond=self._respond)

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            return SampleAnswer(404, HTML, b"")
        if len(self.server.requests) > self.free:
            self.gate.wait(120)
        return SampleAnswer(200, HTML, f"<title>{target}</title><p>This is the page {target}.</p>".encode())


@pytest.fixture
def web() -> Iterator[GatedWeb]:
    web = GatedWeb(free=60)
    with web.server:
        yield web
        web.gate.set()


def add(yard: Yard, urls: list[str], **more: object) -> str:
    payload = {"urls": urls, "speed": "max", "allow_private": ["127.0.0.0/8"], **more}
    return jobs.enqueue_many(yard.database, [NewJob("page", payload, max_retries=5)])[0]


def assert_each_once(yard: Yard, id: str, asked: list[str]) -> None:
    found = list(results.every(yard.database, id))
    assert len(found) == len(asked), (urls.counts(yard.database, id), yard.lines(id))
    assert sorted(each.original_url or "" for each in found) == sorted(asked)
    assert all(each.success for each in found)
    assert yard.adds_up(id)


def test_a_batch_is_one_job(yard: Yard, web: GatedWeb) -> None:
    web.gate.set()
    asked = [f"{web.server.url}page/{number}" for number in range(500)]
    id = add(yard, [*asked, asked[0], f"{asked[0]}#part"])
    yard.start(**PATIENT)
    job = yard.wait_for(id, Status.COMPLETED)
    assert job.attempt == 1
    assert_each_once(yard, id, asked)
    assert len(web.server.requests) == 501, "each page once, and robots.txt"


@pytest.mark.parametrize("verb", ["pause", "stop"])
def test_a_batch_obeys_and_goes_on_where_it_was(yard: Yard, web: GatedWeb, verb: str) -> None:
    asked = [f"{web.server.url}page/{number}" for number in range(150)]
    id = add(yard, asked)
    yard.start(**PATIENT)
    eventually("pages come", lambda: len(web.server.requests) > web.free)
    yard.wait_for_results(id)
    jobs.wish(yard.database, id, Verb(verb))
    yard.wait_for(id, Status.PAUSED if verb == "pause" else Status.STOPPED)
    stored = results.count(yard.database, id)
    assert 0 < stored < len(asked)
    assert urls.counts(yard.database, id).queued == len(asked) - stored
    web.gate.set()
    jobs.wish(yard.database, id, Verb.RESUME if verb == "pause" else Verb.RETRY)
    yard.wait_for(id, Status.COMPLETED)
    assert_each_once(yard, id, asked)


def test_a_batch_survives_kill_9(yard: Yard, web: GatedWeb) -> None:
    asked = [f"{web.server.url}page/{number}" for number in range(150)]
    id = add(yard, asked)
    yard.start(**PATIENT)
    yard.wait_for_results(id)
    os.kill(yard.runner_of(id), signal.SIGKILL)
    web.gate.set()
    job = yard.wait_for(id, Status.COMPLETED)
    assert job.crash_count == 1
    assert_each_once(yard, id, asked)


def test_a_job_takes_from_the_cache_and_its_copies_do_not_make_old_pages_new(yard: Yard, web: GatedWeb) -> None:
    asked = [f"{web.server.url}page/{number}" for number in range(3)]
    first = add(yard, asked)
    yard.start(**PATIENT)
    yard.wait_for(first, Status.COMPLETED)
    newest = max(each.created_at for each in results.every(yard.database, first))
    before = list(web.server.requests)
    second = add(yard, asked, max_age=3600)
    yard.wait_for(second, Status.COMPLETED)
    assert web.server.requests == before
    copies = list(results.every(yard.database, second))
    assert [each.metadata["cached_from"] for each in copies] == [first] * 3
    assert copies[0].data == next(results.every(yard.database, first)).data
    since = newest + timedelta(microseconds=1)
    assert results.cached(yard.database, url_key(asked[0]), newest - timedelta(hours=1)) is not None
    assert results.cached(yard.database, url_key(asked[0]), since) is None, "a copy is not a fresh page"


def test_failures_have_their_results_too(yard: Yard, web: GatedWeb) -> None:
    dead = "http://127.0.0.1:1/"
    id = add(yard, [f"{web.server.url}page/1", dead])
    yard.start(**PATIENT)
    yard.wait_for(id, Status.COMPLETED)
    good, bad = results.every(yard.database, id)
    assert (good.success, bad.success) == (True, False)
    assert bad.metadata["error"] == "connect_failed"
    assert bad.metadata["retryable"] is True
    assert urls.reasons(yard.database, id) == [("failed", "connect_failed", 1)]

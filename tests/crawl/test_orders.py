"""Orders reach a running crawl: what is in flight is finished or returned to the ledger, and it goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.crawl.harness import Crawl, SyntheticWeb, closing


@pytest.fixture(scope="module")
def server():
    with closing(SyntheticWeb(hosts=10, pages=40, latency=0.05)) as running:
        yield running


@pytest.fixture
def slow_web(server: SyntheticWeb) -> Iterator[SyntheticWeb]:
    """Quick for some pages, and then so slow that no crawl is over before it was told what to do."""
    server.slow_after(40)
    yield server
    server.slow_after(None)


def until(what: str, happened, timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < deadline, f"still waiting until {what}"
        time.sleep(0.02)


@pytest.mark.parametrize("word", ["paused", "stopped", "cancelled", "released"])
def test_an_order_ends_the_attempt_and_loses_nothing(slow_web: SyntheticWeb, make_crawl, word: str) -> None:
    crawl = make_crawl(checkpoint_seconds=0.1)
    crawl.enqueue(url=slow_web.start, scope="any", concurrency=5)
    crawl.start(fetchers=2, parsers=1)
    until("some pages are stored", lambda: crawl.counts.done > 20)
    before = time.monotonic()
    crawl.order(word)
    assert crawl.finish() == word
    print(f"{word} after {time.monotonic() - before:.2f} s")
    crawl.assert_books_balance()
    counts = crawl.counts
    assert 20 < counts.done < len(slow_web.reachable())
    assert counts.in_flight == 0
    assert counts.queued > 0
    slow_web.slow_after(None)
    crawl.put_back()
    crawl.start(fetchers=1, parsers=0)
    assert crawl.finish() == "completed"
    assert {result.final_url for result in crawl.results()} == slow_web.reachable()
    crawl.assert_books_balance()


def test_an_order_does_not_wait_for_a_server_that_hangs(make_crawl) -> None:
    from tests.crawl.hostile_server import HostileServer

    with HostileServer() as server:
        crawl = make_crawl(idle_seconds=0.1)
        crawl.enqueue(url=server.url("/hang"))
        crawl.start()
        until("the page was asked for", lambda: "/hang" in server.paths())
        until("people see it", lambda: crawl.counts.in_flight == 1)
        crawl.order("paused")
        assert crawl.finish() == "paused"
    assert (crawl.counts.queued, crawl.counts.in_flight) == (1, 0)
    assert crawl.counts.live["in_flight"] == []
    crawl.assert_books_balance()


@pytest.mark.parametrize("role", ["fetcher", "parser"])
def test_a_dead_child_is_replaced(slow_web: SyntheticWeb, make_crawl, role: str) -> None:
    crawl = make_crawl(checkpoint_seconds=0.1)
    crawl.enqueue(url=slow_web.start, scope="any", concurrency=5)
    crawl.start(fetchers=2, parsers=1)
    until("some pages are stored", lambda: crawl.counts.done > 10)
    (victim,) = crawl.children(role)
    victim.kill()
    slow_web.slow_after(None)
    assert crawl.finish() == "completed"
    assert {result.final_url for result in crawl.results()} == slow_web.reachable()
    crawl.assert_books_balance()


def test_the_whole_tree_dies_with_its_leader(slow_web: SyntheticWeb, make_crawl) -> None:
    crawl = make_crawl(checkpoint_seconds=0.1)
    crawl.enqueue(url=slow_web.start, scope="any", concurrency=2)
    crawl.start(fetchers=3, parsers=2)
    until("some pages are stored", lambda: crawl.counts.done > 5)
    assert len(crawl.children("fetcher") + crawl.children("parser")) == 4
    children = psutil.Process(crawl.process.pid).children(recursive=True)
    os.kill(crawl.process.pid, signal.SIGKILL)
    crawl.process.communicate()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []


def test_a_lost_lease_stops_the_attempt_at_once(slow_web: SyntheticWeb, make_crawl) -> None:
    crawl: Crawl = make_crawl(checkpoint_seconds=0.1)
    crawl.enqueue(url=slow_web.start, scope="any", concurrency=2)
    crawl.start(fetchers=2)
    until("some pages are stored", lambda: crawl.counts.done > 5)
    crawl.put_back()
    stored = crawl.counts.done
    crawl.process.stdin.close()
    crawl.process.stdin = None
    try:
        crawl.process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        crawl.kill()
        raise
    assert crawl.process.returncode == 1
    assert crawl.counts.done == stored, "it wrote after its lease was lost"
    crawl.assert_books_balance()


@pytest.mark.parametrize(("role", "sizes"), [("parser", {"parsers": 1}), ("fetcher", {"fetchers": 2})])
def test_dead_children_are_reaped_while_the_crawl_goes_on(slow_web: SyntheticWeb, make_crawl, role, sizes) -> None:
    crawl = make_crawl(checkpoint_seconds=0.1)
    crawl.enqueue(url=slow_web.start, scope="any", concurrency=5)
    crawl.start(**{"fetchers": 1, **sizes})
    until("some pages are stored", lambda: crawl.counts.done > 5)
    killed: list[int] = []
    for _ in range(4):
        until(f"there is a {role}", lambda: [child for child in crawl.children(role) if child.pid not in killed])
        (child,) = (child for child in crawl.children(role) if child.pid not in killed)
        os.kill(child.pid, signal.SIGKILL)
        killed.append(child.pid)
    until("every dead child is reaped", lambda: not any(map(psutil.pid_exists, killed)))
    assert crawl.process.poll() is None, "the crawl was over before its children were reaped"
    crawl.order("cancelled")
    assert crawl.finish() == "cancelled"

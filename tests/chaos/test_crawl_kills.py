"""kill -9 anywhere in a crawl, at any moment, as often as you like: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress

import pytest

from tests.crawl.harness import Crawl, SyntheticWeb, assert_links_are_those_of, closing
from tests.support.effort import LONG

KILLS = 50 if LONG else 12
LAYOUTS = [(1, 0), (1, 1), (2, 1), (2, 2), (4, 2), (3, 0)]
CONCURRENCY = 6
TUNING = {"checkpoint_seconds": 0.2, "checkpoint_pages": 30, "soft_unsaved": 30, "hard_unsaved": 60}


def strike(crawl: Crawl, chance: random.Random) -> str:
    """Kill something; what it was."""
    children = {role: crawl.children(role) for role in ("fetcher", "parser")}
    victim = chance.choice(["leader", "tree", *(role for role, several in children.items() if several for _ in "12")])
    with suppress(ProcessLookupError):
        if victim == "tree":
            os.killpg(crawl.process.pid, signal.SIGKILL)
        elif victim == "leader":
            os.kill(crawl.process.pid, signal.SIGKILL)
        else:
            os.kill(chance.choice(children[victim]).pid, signal.SIGKILL)
    return victim


def wait_for_progress(crawl: Crawl, pages: int) -> bool:
    """Until so many more pages are durable; False: the attempt ended before."""
    goal = crawl.counts.done + pages
    deadline = time.monotonic() + 60
    while crawl.counts.done < goal and time.monotonic() < deadline:
        try:
            crawl.process.wait(0.01)
            return False
        except subprocess.TimeoutExpired:
            continue
    return crawl.process.poll() is None


@pytest.mark.timeout(1800 if LONG else 300)
def test_a_crawl_survives_kill_9_anywhere(tmp_path, figure):
    chance = random.Random(os.environ.get("SILKLINE_SEED", "silk"))
    pages = 400 if LONG else 30
    kills: Counter[str] = Counter()
    with closing(SyntheticWeb(hosts=30, pages=pages, latency=0.02)) as web, closing(Crawl(tmp_path, TUNING)) as crawl:
        reachable = web.reachable()
        step = max(1, len(reachable) // (2 * KILLS if LONG else KILLS + 2))
        crawl.enqueue(url=web.start, scope="any", concurrency=CONCURRENCY)
        attempts = bound = 0
        while True:
            fetchers, parsers = chance.choice(LAYOUTS)
            crawl.start(fetchers=fetchers, parsers=parsers)
            attempts += 1
            struck = ""
            while kills.total() < KILLS and struck not in ("leader", "tree"):
                web.slow_after(step)  # it must not be over before we strike, however late we do
                if not wait_for_progress(crawl, chance.randrange(step)):
                    break
                time.sleep(chance.random() * 0.2)
                kills[struck := strike(crawl, chance)] += 1
                bound += (TUNING["hard_unsaved"] + CONCURRENCY) * fetchers
            web.slow_after(None)
            crawl.process.communicate(timeout=120)
            if crawl.process.returncode == 0:
                break
            assert crawl.process.returncode == -signal.SIGKILL, "the attempt ended by itself, and badly"
            crawl.assert_books_balance()
            crawl.put_back()
        stored = Counter(result.final_url for result in crawl.results())
        assert set(stored) == reachable
        assert set(stored.values()) == {1}
        assert {row.state for row in crawl.ledger().values()} == {"done"}
        crawl.assert_books_balance()
        assert_links_are_those_of(web, crawl)
        fetched = sum(path != "/robots.txt" for _, _, path in web.log())
    assert kills.total() >= (KILLS if LONG else 5), f"the crawl was over too soon to kill it often: {kills}"
    again = fetched - len(reachable)
    figure.append(
        f"{len(reachable)} pages, {attempts} attempts, kills {dict(kills)}, {again} fetched again (≤ {bound})"
    )
    # What is not durable when a process dies is bounded: what its fetchers may hold unsaved, and what is in flight.
    assert again <= bound

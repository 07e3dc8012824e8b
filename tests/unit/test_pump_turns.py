"""URLs that are settled without a request do not keep the event loop from answers and orders."""

import asyncio
import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from silkline.crawl import pump as pumping
from silkline.crawl.answers import Answers
from silkline.crawl.endings import Endings
from silkline.crawl.fetcher_gauges import FetcherGauges
from silkline.crawl.frontier import Frontier
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.pump import Pump
from silkline.crawl.purpose import Purpose
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.robots import DISALLOW_ALL, Robots
from silkline.model.spec import SiteSpec
from silkline.reading_marks import ReadingMarks
from tests.unit.test_answers import OneResultEach

PLAN = plan_of(SiteSpec(url="http://a.example/"), fetchers=1, concurrency=8)
URLS = 40


class Everything(OneResultEach):
    def is_over(self, _entry: FrontierUrl) -> bool:
        return False


async def left_between_turns() -> list[int]:
    """How many forbidden URLs are left whenever the event loop does something else."""
    reader = GuardedReader(PLAN, ReadingMarks.open(""))
    frontier, outbox = Frontier(PLAN.pace, window=100, per_host=100), Outbox()
    purpose: Purpose = Everything()  # type: ignore[assignment]
    nothing: Any = None
    parts = (frontier, outbox, Endings(PLAN.tuning, frontier, outbox, purpose, lambda: None))
    answers = Answers(PLAN, reader, None, *parts, purpose, FetcherGauges(0.0), lambda: None)
    pump = Pump(PLAN, nothing, reader, *parts, answers, purpose, nothing, nothing, nothing, nothing)
    pump.gate.rules_for = lambda _host, _url: Robots(DISALLOW_ALL, 1e9)  # type: ignore[method-assign]
    loop = asyncio.get_running_loop()
    for id in range(1, URLS + 1):
        assert frontier.offer("a.example", FrontierUrl(0, id, f"http://a.example/{id}", 0), loop.time())
    pump.start()
    pump.soon()
    left = [URLS]
    for _ in range(2 * URLS):
        await asyncio.sleep(0)
        left.append(frontier.size)
    pump.close()
    reader.close()
    return left


def test_the_event_loop_goes_on_between_urls_that_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(pumping, "time", SimpleNamespace(monotonic=lambda: next(clock) * 0.02))  # each look: 20 ms
    left = asyncio.run(left_between_turns())
    steps = [before - after for before, after in itertools.pairwise(left)]
    assert sum(steps) == URLS
    assert max(steps) == 3


def test_quick_urls_need_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumping, "time", SimpleNamespace(monotonic=lambda: 0.0))
    left = asyncio.run(left_between_turns())
    assert set(left) == {URLS, 0}

"""The robots.txt of a host whose file is that of another host."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from silkline.crawl import robots_cache
from silkline.crawl.robots_cache import RobotsCache
from silkline.fetch import robots
from silkline.fetch.robots import Robots
from silkline.model.fetched import Fetched, Request

RULES = b"User-agent: *\nDisallow: /private\nSitemap: https://good.example/sitemap.xml\n"
GOOD = "https://good.example"


class Web:
    """Every host but good.example redirects its robots.txt to a path of good.example."""

    def __init__(self, path: str = "/robots.txt", reason: str | None = None) -> None:
        self.path = path
        self.reason = reason
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0

    async def fetch(self, request: Request) -> Fetched:
        if not request.url.startswith(GOOD):
            return Fetched(request.url, 302, location=GOOD + self.path)
        self.asked.append(request.url)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return Fetched(request.url, 200 if self.reason is None else 0, self.reason, body=RULES)


class Reader:
    async def robots(self, answer: Fetched, origin: str, now: float, product: str) -> Robots:
        return robots.decide(answer, now, product)


def cache_of(web: Web) -> RobotsCache:
    reader: Any = Reader()
    return RobotsCache(web, "silkline", reader, ignore=False)


def loaded(cache: RobotsCache, number: int) -> Coroutine[Any, Any, tuple[Robots, int]]:
    return cache.load(f"https://{number}.example")


def test_rules_that_are_known_are_not_asked_for_again() -> None:
    """600 hosts that redirect to a good one made it answer for its robots.txt instead of its pages."""

    async def work() -> None:
        web = Web()
        cache = cache_of(web)
        await cache.load(GOOD)
        for number in range(3):
            rules, failures = await loaded(cache, number)
            assert failures == 0
            assert not rules.allows("https://x.example/private/1")
            assert cache.of(f"https://{number}.example") is not None
        assert len(web.asked) == 1

    asyncio.run(work())


def test_a_file_of_another_host_is_asked_for_once_and_by_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        web = Web("/rules/everyone.txt")
        cache = cache_of(web)
        found = await asyncio.gather(*(loaded(cache, number) for number in range(20)))
        assert {(rules.allows("https://x.example/private/1"), failures) for rules, failures in found} == {(False, 0)}
        assert len(web.asked) == 1
        monkeypatch.setattr(robots_cache, "_MOST_KEPT", 0)
        web.path = "/rules/other.txt"
        await asyncio.gather(*(loaded(cache, number) for number in range(20, 25)))
        assert len(web.asked) == 6, "there is no room for answers"
        assert web.most_at_once == 1

    asyncio.run(work())


def test_a_failure_of_another_host_is_not_kept() -> None:
    async def work() -> None:
        web = Web(reason="timeout")
        cache = cache_of(web)
        assert [failures for _, failures in (await loaded(cache, 1), await loaded(cache, 1))] == [1, 2]
        web.reason = None
        assert (await loaded(cache, 1))[1] == 0
        assert cache.of("https://1.example") is not None

    asyncio.run(work())


def test_rules_that_have_expired_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        web = Web()
        cache = cache_of(web)
        await cache.load(GOOD)
        later = time.time() + 10 * robots.FRESH_FOR
        monkeypatch.setattr(robots_cache.time, "time", lambda: later)
        await loaded(cache, 1)
        assert len(web.asked) == 2

    asyncio.run(work())

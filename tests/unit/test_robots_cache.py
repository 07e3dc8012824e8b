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
from silkline.model.url import host_of

RULES = b"User-agent: *\nDisallow: /private\nSitemap: https://good.example/sitemap.xml\n"
GOOD = "https://good.example"


class Web:
    """Every host but good.example redirects its robots.txt to a path of good.example, which may contain `{host}`."""

    def __init__(self, path: str = "/robots.txt", reason: str | None = None) -> None:
        self.path = path
        self.reason = reason
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0

    async def fetch(self, request: Request, _place: object = None) -> Fetched:
        if not request.url.startswith(GOOD):
            return Fetched(request.url, 302, location=GOOD + self.path.format(host=host_of(request.url)))
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
        for _ in range(2):
            await asyncio.gather(*(loaded(cache, number) for number in range(20, 25)))
        assert len(web.asked) == 3, "there is no room for answers"
        web.path = "/rules/{host}.txt"
        await asyncio.gather(*(loaded(cache, number) for number in range(25, 30)))
        assert (len(web.asked), web.most_at_once) == (8, 1)

    asyncio.run(work())


def test_a_failure_of_another_host_is_shared_and_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 hosts whose robots.txt redirects to one file that never comes held all slots, one timeout after the other."""

    async def work() -> None:
        web = Web("/rules/everyone.txt", reason="timeout")
        cache = cache_of(web)
        found = await asyncio.gather(*(loaded(cache, number) for number in range(20)))
        assert {(rules.reason, failures) for rules, failures in found} == {("timeout", 1)}
        web.path = "/rules/other.txt"
        rules, _ = await loaded(cache, 20)
        assert rules.reason == "timeout"
        assert len(web.asked) == 1, "the host gets no request for another file either"
        assert all(each.retry_after > 0 for each in (rules, *(each for each, _ in found))), "no try is wasted"
        later = time.time() + rules.retry_after
        monkeypatch.setattr(robots_cache.time, "time", lambda: later)
        web.reason = None
        assert [(await loaded(cache, number))[1] for number in range(21)] == [0] * 21
        assert len(web.asked) == 2

    asyncio.run(work())


def test_an_error_of_one_file_says_nothing_about_other_files() -> None:
    async def work() -> None:
        web = Web("/broken.txt", reason="http_503")
        cache = cache_of(web)
        assert [(await loaded(cache, number))[0].reason for number in (1, 2)] == ["http_503"] * 2
        web.path, web.reason = "/whole.txt", None
        assert (await loaded(cache, 3))[1] == 0
        assert web.asked == [f"{GOOD}/broken.txt", f"{GOOD}/whole.txt"]

    asyncio.run(work())


def test_the_wait_for_a_file_of_another_host_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock may not allow a request for hours, and other files of it may come first."""
    monkeypatch.setattr(robots_cache, "_LONGEST_WAIT", 0.05)
    web = Web("/never.txt")

    async def never(request: Request, _place: object = None) -> Fetched:
        if request.url.startswith(GOOD):
            web.asked.append(request.url)
            await asyncio.Event().wait()
        return Fetched(request.url, 302, location=f"{GOOD}/{host_of(request.url)}.txt")

    async def work() -> None:
        monkeypatch.setattr(web, "fetch", never)
        cache = cache_of(web)
        found = await asyncio.gather(*(loaded(cache, number) for number in range(5)))
        assert [(rules.reason, failures) for rules, failures in found] == [("timeout", 1)] * 5
        assert (await loaded(cache, 0))[1] == 2
        assert len(web.asked) < 5

    asyncio.run(work())


def test_a_request_that_nobody_waits_for_any_more_is_ended() -> None:
    async def work() -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        class Slow(Web):
            async def fetch(self, request: Request, _place: object = None) -> Fetched:
                if request.url.startswith(GOOD):
                    began.set()
                    try:
                        await asyncio.Event().wait()
                    finally:
                        ended.set()
                return await super().fetch(request)

        cache = cache_of(Slow("/x.txt"))
        waiting = [asyncio.ensure_future(loaded(cache, number)) for number in range(2)]
        await began.wait()
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        assert not ended.is_set(), "another host waits for it"
        waiting[1].cancel()
        await ended.wait()

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

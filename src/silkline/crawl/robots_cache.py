"""The robots rules of the origins of a fetcher, and how often in a row they could not be fetched."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from silkline.crawl.guarded_reader import GuardedReader
from silkline.fetch import robots
from silkline.fetch.redirects_outside_ledger import OneHop
from silkline.fetch.robots import ALLOW_ALL, DISALLOW_ALL, Robots
from silkline.metrics.instruments import CACHE_LOOKUPS
from silkline.model.fetched import BAD_REDIRECT, READER_DIED, Fetched, Request, is_temporary
from silkline.model.url import host_of, origin_of

ROBOTS_TOO_LARGE: Final = "robots_too_large"
_NO_RULES = Robots(ALLOW_ALL, float("inf"))
# Groups up to this size are always kept. Larger ones are rare, and together they may take this much memory. When it is
# used up, the rules of one more such host count as unavailable, and nothing of it is fetched.
_SMALL_GROUP: Final = 4_096
_MOST_LARGE_GROUPS: Final = 64 << 20
_KNOWN: Final = "known"
_KEPT_SECONDS: Final = 600.0
_MOST_KEPT: Final = 4 << 20


class RobotsCache:
    """robots.txt of each origin, kept while it is fresh."""

    def __init__(
        self,
        client: OneHop,
        product: str,
        reader: GuardedReader,
        *,
        ignore: bool,
        excludes: Callable[[str], bool] = lambda host: False,
    ) -> None:
        self._excludes = excludes
        self._client = client
        self._reader = reader
        self._product = product
        self._ignore = ignore
        self._rules: dict[str, Robots] = {}
        self._failures: dict[str, int] = {}
        self._large = 0
        self._foreign = ForeignRobots(client)

    def of(self, origin: str) -> Robots | None:
        """The rules for an origin. None: they must be loaded first."""
        if self._ignore:
            return _NO_RULES
        rules = self._rules.get(origin)
        if rules is not None and rules.expires_at > time.time():
            CACHE_LOOKUPS.add(1, "robots", "hit")
            return rules
        CACHE_LOOKUPS.add(1, "robots", "miss")
        if rules is not None:
            self._drop(origin)
        return None

    async def load(self, origin: str) -> tuple[Robots, int]:
        """The rules, and how often in a row they could not be fetched. Rules that could not be fetched are not kept."""
        known: list[Robots] = []
        hops = _Hops(self._client, self._foreign, origin)
        answer = await robots.ask(hops, origin, partial(self._may_follow, known))
        if known:
            self._failures.pop(origin, None)
            self._keep(origin, known[0])
            return known[0], 0
        rules = await self._reader.robots(answer, origin, time.time(), self._product)
        if rules.reason == READER_DIED:  # kept, so that no other process dies while reading this file
            self._rules[origin] = rules
        if rules.group == DISALLOW_ALL and rules.reason is not None:
            self._failures[origin] = failures = self._failures.get(origin, 0) + 1
            return rules, failures
        self._failures.pop(origin, None)
        if not self._keep(origin, rules):
            return Robots(DISALLOW_ALL, rules.expires_at, reason=ROBOTS_TOO_LARGE), 1
        return rules, 0

    def _keep(self, origin: str, rules: Robots) -> bool:
        """False: there is no room for rules of this size."""
        self._drop(origin)
        size = _large_size(rules)
        if self._large + size > _MOST_LARGE_GROUPS:
            return False
        self._large += size
        self._rules[origin] = msgspec.structs.replace(rules, sitemaps=())  # the caller has them now
        return True

    def _may_follow(self, known: list[Robots], url: str) -> str | None:
        """A host that the crawl excludes gets no request, not even for the robots.txt of another host. Neither does a
        host whose own rules are known: they are added to `known`."""
        if self._excludes(host_of(url)):
            return BAD_REDIRECT
        origin = origin_of(url)
        rules = self._rules.get(origin) if url == f"{origin}/robots.txt" else None
        if rules is None or rules.expires_at <= time.time():
            return None
        known.append(rules)
        return _KNOWN

    def forget(self, host: str) -> None:
        for scheme in ("http", "https"):
            self._drop(f"{scheme}://{host}")
            self._failures.pop(f"{scheme}://{host}", None)

    def _drop(self, origin: str) -> None:
        rules = self._rules.pop(origin, None)
        if rules is not None:
            self._large -= _large_size(rules)


class ForeignRobots:
    """Files to which the robots.txt of other hosts redirect.

    A host gets one such request at a time, and none again for a while: thousands of hosts may redirect to it, and every
    request takes a turn from its own pages.
    """

    def __init__(self, client: OneHop) -> None:
        self._client = client
        self._turns: dict[str, asyncio.Lock] = {}
        self._users: Counter[str] = Counter()
        self._answers: dict[str, tuple[float, Fetched]] = {}
        self._size = 0

    async def fetch(self, request: Request) -> Fetched:
        host = host_of(request.url)
        self._users[host] += 1
        try:
            async with self._turns.setdefault(host, asyncio.Lock()):
                expires_at, known = self._answers.get(request.url, (0.0, None))
                if known is not None and expires_at > time.time():
                    return known
                fetched = await self._client.fetch(request)
                self._keep(request.url, fetched)
                return fetched
        finally:
            self._users[host] -= 1
            if not self._users[host]:
                del self._users[host], self._turns[host]

    def _keep(self, url: str, fetched: Fetched) -> None:
        """Keep an answer for a while; of failures, the next host may be luckier."""
        self._forget(url)
        if is_temporary(fetched.reason):
            return
        self._answers[url] = (time.time() + _KEPT_SECONDS, fetched)
        self._size += _kept_size(fetched)
        while self._size > _MOST_KEPT:
            self._forget(next(iter(self._answers)))

    def _forget(self, url: str) -> None:
        _, known = self._answers.pop(url, (0.0, None))
        if known is not None:
            self._size -= _kept_size(known)


class _Hops:
    """The requests for the robots.txt of one origin: to its own host, and to others."""

    def __init__(self, own: OneHop, foreign: OneHop, origin: str) -> None:
        self._own = own
        self._foreign = foreign
        self._host = host_of(origin)

    async def fetch(self, request: Request) -> Fetched:
        return await (self._own if host_of(request.url) == self._host else self._foreign).fetch(request)


def _kept_size(fetched: Fetched) -> int:
    return len(fetched.body) + 2_000


def _large_size(rules: Robots) -> int:
    return len(rules.group) if len(rules.group) > _SMALL_GROUP else 0


def unreachable(rules: Robots) -> bool:
    """The host itself could not be reached. This is different from a broken robots.txt."""
    reason = rules.reason or ""
    return not reason.startswith("http_") and (is_temporary(reason) or reason in _NO_SUCH_PLACE)


_NO_SUCH_PLACE = frozenset({"host_unknown", "tls_failed", "address_blocked", "bad_response", "scheme_blocked"})

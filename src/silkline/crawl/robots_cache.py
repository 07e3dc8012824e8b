"""The robots rules of the origins of a fetcher, and how often in a row they could not be fetched."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

from silkline.crawl.guarded_reader import GuardedReader
from silkline.fetch import robots
from silkline.fetch.redirects_outside_ledger import OneHop
from silkline.fetch.robots import ALLOW_ALL, DISALLOW_ALL, Robots
from silkline.metrics.instruments import CACHE_LOOKUPS
from silkline.model.fetched import BAD_REDIRECT, READER_DIED, is_temporary
from silkline.model.url import host_of

ROBOTS_TOO_LARGE: Final = "robots_too_large"
_NO_RULES = Robots(ALLOW_ALL, float("inf"))
# Groups up to this size are always kept. Larger ones are rare, and together they may take this much memory. When it is
# used up, the rules of one more such host count as unavailable, and nothing of it is fetched.
_SMALL_GROUP: Final = 4_096
_MOST_LARGE_GROUPS: Final = 64 << 20


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
        answer = await robots.ask(self._client, origin, self._may_follow)
        rules = await self._reader.robots(answer, origin, time.time(), self._product)
        if rules.reason == READER_DIED:  # kept, so that no other process dies while reading this file
            self._rules[origin] = rules
        if rules.group == DISALLOW_ALL and rules.reason is not None:
            self._failures[origin] = failures = self._failures.get(origin, 0) + 1
            return rules, failures
        self._failures.pop(origin, None)
        self._drop(origin)
        size = _large_size(rules)
        if self._large + size > _MOST_LARGE_GROUPS:
            rules = Robots(DISALLOW_ALL, rules.expires_at, reason=ROBOTS_TOO_LARGE)
            return rules, 1
        self._large += size
        self._rules[origin] = msgspec.structs.replace(rules, sitemaps=())  # the caller has them now
        return rules, 0

    def _may_follow(self, url: str) -> str | None:
        """A host that the crawl excludes gets no request, not even for the robots.txt of another host."""
        return BAD_REDIRECT if self._excludes(host_of(url)) else None

    def forget(self, host: str) -> None:
        for scheme in ("http", "https"):
            self._drop(f"{scheme}://{host}")
            self._failures.pop(f"{scheme}://{host}", None)

    def _drop(self, origin: str) -> None:
        rules = self._rules.pop(origin, None)
        if rules is not None:
            self._large -= _large_size(rules)


def _large_size(rules: Robots) -> int:
    return len(rules.group) if len(rules.group) > _SMALL_GROUP else 0


def unreachable(rules: Robots) -> bool:
    """The host itself could not be reached. This is different from a broken robots.txt."""
    reason = rules.reason or ""
    return not reason.startswith("http_") and (is_temporary(reason) or reason in _NO_SUCH_PLACE)


_NO_SUCH_PLACE = frozenset({"host_unknown", "tls_failed", "address_blocked", "bad_response", "scheme_blocked"})

"""The rules of the origins a fetcher asks, and how often it has tried in vain to get them."""

from __future__ import annotations

import time

from silkline.crawl.guarded_reader import GuardedReader
from silkline.fetch import robots
from silkline.fetch.redirects import Fetcher
from silkline.fetch.robots import ALLOW_ALL, DISALLOW_ALL, Robots
from silkline.model.fetched import READER_DIED, is_temporary

_NO_RULES = Robots(ALLOW_ALL, float("inf"))


class RobotsCache:
    """robots.txt of each origin, kept while it is fresh."""

    def __init__(self, client: Fetcher, product: str, reader: GuardedReader, *, ignore: bool) -> None:
        self._client = client
        self._reader = reader
        self._product = product
        self._ignore = ignore
        self._rules: dict[str, Robots] = {}
        self._failures: dict[str, int] = {}

    def of(self, origin: str) -> Robots | None:
        """What holds for an origin; None: it must be loaded first."""
        if self._ignore:
            return _NO_RULES
        rules = self._rules.get(origin)
        if rules is None or rules.expires_at > time.time():
            return rules
        del self._rules[origin]
        return None

    async def load(self, origin: str) -> tuple[Robots, int]:
        """The rules, and how often in a row they could not be had. Those that could not are not kept."""
        answer = await robots.ask(self._client, origin)
        rules = await self._reader.robots(answer, origin, time.time(), self._product)
        if rules.reason == READER_DIED:  # kept, so that nobody dies of this file again
            self._rules[origin] = rules
        if rules.group == DISALLOW_ALL and rules.reason is not None:
            self._failures[origin] = failures = self._failures.get(origin, 0) + 1
            return rules, failures
        self._failures.pop(origin, None)
        self._rules[origin] = rules
        return rules, 0

    def forget(self, host: str) -> None:
        for scheme in ("http", "https"):
            self._rules.pop(f"{scheme}://{host}", None)
            self._failures.pop(f"{scheme}://{host}", None)


def unreachable(rules: Robots) -> bool:
    """The host itself could not be reached, as opposed to its robots.txt being broken."""
    reason = rules.reason or ""
    return not reason.startswith("http_") and (is_temporary(reason) or reason in _NO_SUCH_PLACE)


_NO_SUCH_PLACE = frozenset({"host_unknown", "tls_failed", "address_blocked", "bad_response", "scheme_blocked"})

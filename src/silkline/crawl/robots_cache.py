"""The robots rules of the origins of a fetcher, and how often in a row they could not be fetched."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

import msgspec

from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.reading_turns import Sender, sender_of
from silkline.crawl.request_place import RequestPlace
from silkline.crawl.robots_room import RobotsRoom
from silkline.fetch import robots
from silkline.fetch.robots import ALLOW_ALL, DISALLOW_ALL, Robots
from silkline.metrics.instruments import CACHE_LOOKUPS
from silkline.model.fetched import (
    BAD_REDIRECT,
    CONNECT_FAILED,
    CONNECT_TIMEOUT,
    DNS_FAILED,
    DNS_TIMEOUT,
    READER_DIED,
    TIMEOUT,
    Fetched,
    Request,
    is_temporary,
    retry_after,
)
from silkline.model.host_wait import ROBOTS_NO_ROOM
from silkline.model.url import host_of, origin_of

_NO_RULES = Robots(ALLOW_ALL, float("inf"))
_KNOWN: Final = "known"
_KEPT_SECONDS: Final = 600.0
_FAILURE_KEPT_SECONDS: Final = 50.0
_LONGEST_WAIT: Final = 30.0
"""Seconds for a file of another host, with the wait for the turn at that host."""
_NO_ANSWER: Final = frozenset({TIMEOUT, CONNECT_FAILED, CONNECT_TIMEOUT, DNS_FAILED, DNS_TIMEOUT})
"""Failures after which a host gets no request for another file either, as long as the failure is kept."""
_MOST_KEPT: Final = 4 << 20


class PlacedHop(Protocol):
    """A client that makes one request at a time."""

    async def fetch(self, request: Request, place: RequestPlace | None) -> Fetched:
        """Make one request, which has this place at an address."""


class RobotsCache:
    """robots.txt of each origin, kept while it is fresh, and while there is room.

    `in_use` says whether an origin needs its rules soon, and `address_of` the address of a host.
    """

    def __init__(
        self,
        client: PlacedHop,
        product: str,
        reader: GuardedReader,
        *,
        ignore: bool,
        excludes: Callable[[str], bool] = lambda host: False,
        in_use: Callable[[str], bool] = lambda origin: True,
        address_of: Callable[[str], str] = lambda host: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._excludes = excludes
        self._client = client
        self._reader = reader
        self._product = product
        self._ignore = ignore
        self._rules: dict[str, Robots] = {}
        self._failures: dict[str, int] = {}
        self._room = RobotsRoom(lambda origin: _sender(origin, address_of), in_use, self._lose, clock)
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

    async def load(self, origin: str, place: RequestPlace | None = None) -> tuple[Robots, int]:
        """The rules, and how often in a row they could not be fetched. Rules that could not be fetched are not kept."""
        known: list[Robots] = []
        hops = _Hops(self._client, self._foreign, origin, place)
        answer = await robots.ask(hops, origin, partial(self._may_follow, known))
        if known:
            return self._loaded(origin, known[0])
        rules = await self._reader.robots(answer, origin, time.time(), self._product)
        if rules.reason == READER_DIED:  # kept, so that no other process dies while reading this file
            self._rules[origin] = rules
        if rules.group == DISALLOW_ALL and rules.reason is not None:
            return rules, self._failed(origin)
        return self._loaded(origin, rules)

    def unreachable(self, origin: str, reason: str) -> tuple[Robots, int]:
        """The same, without a request: the origin cannot be reached."""
        return Robots(DISALLOW_ALL, time.time(), reason=reason), self._failed(origin)

    def _failed(self, origin: str) -> int:
        self._failures[origin] = failures = self._failures.get(origin, 0) + 1
        return failures

    def _loaded(self, origin: str, rules: Robots) -> tuple[Robots, int]:
        self._drop(origin)
        if not self._room.add(origin, sys.getsizeof(rules.group)):
            return msgspec.structs.replace(rules, group=DISALLOW_ALL, reason=ROBOTS_NO_ROOM), self._failed(origin)
        self._failures.pop(origin, None)
        self._rules[origin] = msgspec.structs.replace(rules, sitemaps=())  # the caller has them now
        return rules, 0

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

    def _lose(self, origin: str) -> None:
        self._rules.pop(origin, None)

    def _drop(self, origin: str) -> None:
        self._lose(origin)
        self._room.drop(origin)


class ForeignRobots:
    """Files to which the robots.txt of other hosts redirect.

    A host gets one such request at a time, and none again for a while: thousands of hosts may redirect to it, and every
    request takes a turn from its own pages. All who want the same file get the same answer at the same time, also a
    failure: each of them holds a request slot while it waits, so one file that never comes must not be waited for again
    and again.
    """

    def __init__(self, client: PlacedHop) -> None:
        self._client = client
        self._turns: dict[str, asyncio.Lock] = {}
        self._users: Counter[str] = Counter()
        self._under_way: dict[str, asyncio.Task[Fetched]] = {}
        self._waiting: Counter[str] = Counter()
        self._answers: dict[str, tuple[float, Fetched]] = {}
        """By URL, and failures also by host."""
        self._size = 0

    async def fetch(self, request: Request, place: RequestPlace | None) -> Fetched:
        """The file. The first who asks for it gives its place at an address for the request."""
        url = request.url
        known = self._known(url)
        if known is not None:
            return known
        task = self._under_way.get(url)
        if task is None:
            task = self._under_way[url] = asyncio.create_task(self._fetch(request, place))
        self._waiting[url] += 1
        try:
            await asyncio.wait((task,))
        finally:
            self._waiting[url] -= 1
            if not self._waiting[url]:
                del self._waiting[url], self._under_way[url]
                task.cancel()  # the job ends, if it is not done
        return task.result()

    async def _fetch(self, request: Request, place: RequestPlace | None) -> Fetched:
        """Never raises `TimeoutError`: that is a failure like others."""
        host = host_of(request.url)
        self._users[host] += 1
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                fetched = await self._in_turn(host, request, place)
        except TimeoutError:
            fetched = Fetched(request.url, reason=TIMEOUT, detail="other requests to this host took too long")
            self._keep(request.url, fetched)
        finally:
            self._users[host] -= 1
            if not self._users[host]:
                del self._users[host], self._turns[host]
        return self._known(request.url) or fetched

    async def _in_turn(self, host: str, request: Request, place: RequestPlace | None) -> Fetched:
        async with self._turns.setdefault(host, asyncio.Lock()):
            known = self._known(request.url)  # the host may have failed for another file
            if known is not None:
                return known
            fetched = await self._client.fetch(request, place)
            self._keep(request.url, fetched)
            if fetched.reason in _NO_ANSWER:
                self._keep(host, fetched)
            return fetched

    def _known(self, url: str) -> Fetched | None:
        """The answer that is kept for a URL. One that may change says when to ask again: no host uses up its tries
        while the failure is kept."""
        now = time.time()
        for name in (url, host_of(url)):
            expires_at, known = self._answers.get(name, (0.0, None))
            if known is None or expires_at <= now:
                continue
            if not is_temporary(known.reason):
                return known
            wait = math.ceil(max(expires_at - now, retry_after(known, now) or 0.0))
            headers = {**known.headers, "retry-after": str(wait)}
            return msgspec.structs.replace(known, url=url, headers=headers)
        return None

    def _keep(self, name: str, fetched: Fetched) -> None:
        """Keep an answer for a while. A failure is kept for a shorter time: the next host may be luckier."""
        self._forget(name)
        kept = _KEPT_SECONDS
        if is_temporary(fetched.reason):
            kept, fetched = _FAILURE_KEPT_SECONDS, msgspec.structs.replace(fetched, body=b"")
        self._answers[name] = (time.time() + kept, fetched)
        self._size += _kept_size(fetched)
        while self._size > _MOST_KEPT:
            self._forget(next(iter(self._answers)))

    def _forget(self, name: str) -> None:
        _, known = self._answers.pop(name, (0.0, None))
        if known is not None:
            self._size -= _kept_size(known)


class _Hops:
    """The requests for the robots.txt of one origin: to its own host, and to others."""

    def __init__(self, own: PlacedHop, foreign: PlacedHop, origin: str, place: RequestPlace | None) -> None:
        self._own = own
        self._foreign = foreign
        self._place = place
        self._host = host_of(origin)

    async def fetch(self, request: Request) -> Fetched:
        client = self._own if host_of(request.url) == self._host else self._foreign
        return await client.fetch(request, self._place)


def _kept_size(fetched: Fetched) -> int:
    return len(fetched.body) + 2_000


def _sender(origin: str, address_of: Callable[[str], str]) -> Sender:
    host = host_of(origin)
    return sender_of(host, address_of(host))


def unreachable(rules: Robots) -> bool:
    """The host itself could not be reached. This is different from a broken robots.txt."""
    reason = rules.reason or ""
    return not reason.startswith("http_") and (is_temporary(reason) or reason in _NO_SUCH_PLACE)


_NO_SUCH_PLACE = frozenset({"host_unknown", "tls_failed", "address_blocked", "bad_response", "scheme_blocked"})

"""The queued URLs of a fetcher: per-host queues, breadth first, one clock per host. Pure: the caller passes the time.

Memory holds a window of own URLs, and another one of foreign URLs (url_queue.py): links of others take no room of the
own ones. URLs that do not fit stay in the ledger, which has every queued URL. They are read from there with a cursor
over the ids, one for each window, when there is room (ledger_part.py). `held` has the ids that are in memory in any
form, so that reading the ledger again never adds a URL twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from typing import Final

from silkline.crawl.address_limit import Address
from silkline.crawl.host_heap import HostHeap
from silkline.crawl.ledger_part import LedgerPart
from silkline.crawl.plan import Pace
from silkline.crawl.politeness import Booking, Clock
from silkline.crawl.url_memory import UrlMemory
from silkline.crawl.url_queue import Claim, FrontierUrl, UrlQueue, claimed, is_foreign

_SURE_PART: Final = 125
"""One of so many places of a host is sure, even if the window is full: slow hosts could fill it for hours."""
ALONE_AFTER: Final = 30.0
"""If a level takes longer than this, hosts without a URL at this level go on, each with one request at a time."""


class HostQueue:
    """One host: its queued URLs, and the time of its next request."""

    __slots__ = (
        "address",
        "allowed",
        "answers_own",
        "behind",
        "booking",
        "clock",
        "due",
        "held",
        "in_flight",
        "name",
        "parked",
        "queue",
        "reserved",
        "unproven",
    )

    def __init__(self, name: str, pace: Pace) -> None:
        self.name = name
        self.clock = Clock(pace)
        self.queue = UrlQueue()
        self.in_flight = 0
        self.unproven = 0  # requests in flight that were started before the host was known to be quick
        self.held = 0  # bytes of its answers that wait to be read or rendered
        self.due = False
        self.parked = ""  # why it is left out until `wake`; empty: it is not
        self.reserved = False
        self.behind: frozenset[LedgerPart] = frozenset()  # where the ledger has URLs that had no room in its queue
        self.address: Address | None = None
        self.booking: Booking | None = None
        self.allowed = 0
        """The id of the last URL that the rules of robots.txt allow. One that is put back is compared once."""
        self.answers_own = False
        """One of its own URLs was answered, and since then none of them with a request to wait."""

    def note(self, entry: FrontierUrl, *, answered: bool, refused: bool, missing: bool = False) -> None:
        """The host answered the request for a URL, asked us to wait, or failed. `missing`: there is no such page."""
        self.queue.note(entry, failed=missing or not answered)
        if (answered or refused) and not is_foreign(entry):
            self.answers_own = answered


class Frontier:
    """Every queued URL of one fetcher that is in memory."""

    def __init__(self, pace: Pace, *, window: int, per_host: int) -> None:
        self._pace = pace
        self._per_host = per_host
        self._own = LedgerPart(window, foreign=False)
        self._foreign = LedgerPart(max(1, window // 2), foreign=True)
        self._parts = (self._own, self._foreign)
        self._due: list[tuple[float, int, HostQueue]] = []
        self._later: HostHeap[tuple[str, FrontierUrl]] = HostHeap()
        self._tie = count()
        self.hosts: dict[str, HostQueue] = {}
        self.held: set[int] = set()
        self.level: float = inf
        self._sure: float = inf
        self._level_since = inf
        self._alone = False
        self._claims: UrlMemory[Claim] = UrlMemory()
        """URLs that their hosts have claimed when they were not in a queue: how, until they come into one."""
        self.on_shorter: Callable[[FrontierUrl, int], None] = lambda entry, before: None
        """Called with a URL in memory when a shorter path to it is found, and with its depth before."""

    @property
    def size(self) -> int:
        """The number of URLs in memory."""
        return self._own.size + self._foreign.size

    def host(self, name: str) -> HostQueue:
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = HostQueue(name, self._pace)
        return host

    # Input.

    def offer(self, name: str, entry: FrontierUrl, now: float) -> bool:
        """Take a URL into memory. False: there is no room, and it stays in the ledger."""
        if entry.id in self.held:
            return True
        host, part = self.host(name), self._part_of(entry)
        if not self._has_room(host, part) and not (entry.url in self._claims and self._has_room(host, self._own)):
            if not part.full:
                host.behind |= {part}
            part.refuse(entry.id)
            return False
        self.held.add(entry.id)
        self._enqueue(host, entry, now)
        return True

    def put_back(self, name: str, entry: FrontierUrl, now: float) -> None:
        """Add a URL again that was taken and not fetched."""
        self._enqueue(self.host(name), entry, now)

    def claim(self, name: str, url: str, claim: Claim, now: float) -> None:
        """A host links to a URL that so far only others linked to."""
        host = self.hosts.get(name)
        entry = host.queue.claim(url) if host is not None else None
        if host is not None and entry is not None:
            self._foreign.size -= 1
            self._enqueue(host, self._claimed(entry, claim), now)
        elif self._foreign.unread or self._later:
            self._claims.put(url, claim, len(claim.chain))

    def _claimed(self, entry: FrontierUrl, claim: Claim) -> FrontierUrl:
        own = claimed(entry, claim)
        if self.level == inf:  # depths do not matter: leave it to the ledger
            return own._replace(depth=entry.depth)
        if own.depth < entry.depth:
            self.on_shorter(own, entry.depth)
        return own

    def retry(self, name: str, entry: FrontierUrl, at: float) -> None:
        """Add a URL that is to be tried again, not before `at`."""
        self._part_of(entry).size += 1
        self._later.push(at, entry.id, name, (name, entry))

    def forget(self, id: int) -> None:
        """The end of the URL is in the ledger."""
        self.held.discard(id)

    # Output.

    def take(self, now: float) -> tuple[HostQueue, FrontierUrl] | None:
        """The next URL that may be fetched now."""
        while (first := self._later.first()) is not None and first[0] <= now:
            name, entry = self._later.pop()
            self._part_of(entry).size -= 1
            self._enqueue(self.host(name), entry, now)
        while self._due and self._due[0][0] <= now:
            _, _, host = heappop(self._due)
            host.due = False
            if not self._may_go(host):
                continue
            if host.clock.next_at > now:
                self._schedule(host, now)
                continue
            entry = host.queue.pop(*self._levels(host))
            self._part_of(entry).size -= 1
            return host, self._with_claim(entry)
        return None

    def started(self, host: HostQueue, now: float) -> None:
        """A request to the host was started."""
        host.in_flight += 1
        host.clock.started(now)
        self._schedule(host, now)

    def ended(self, host: HostQueue, now: float) -> None:
        """A request to the host has ended."""
        host.in_flight -= 1
        self.wake(host, now)

    def wake(self, host: HostQueue, now: float) -> None:
        """The state of the host changed: compute again when it may get a request."""
        self._schedule(host, now)
        for part in host.behind:
            if host.queue.size_of(foreign=part.foreign) < self._host_limit(part) // 2:
                host.behind -= {part}
                part.has_room_again()

    def set_level(self, depth: int, now: float, sure: int | None = None) -> None:
        """Take only URLs down to this depth. Everything above `sure` was fetched; the level rises earlier if the crawl
        makes no progress."""
        self.level, self._sure = depth, depth if sure is None else sure
        self._level_since, self._alone = now, False
        self._schedule_all(now)

    def look_at_level(self, now: float) -> None:
        """If the level takes long, for example because of one slow host, the others need not wait for it."""
        if not self._alone and now - self._level_since > ALONE_AFTER:
            self._alone = True
        if self._alone or self._sure < self.level:  # what foreign URLs wait for may have ended without a word to us
            self._schedule_all(now)

    def waits_for_level(self, host: HostQueue) -> bool:
        return bool(host.queue) and not self._alone and not host.queue.allows(*self._levels(host))

    def clear_host(self, host: HostQueue) -> Iterator[FrontierUrl]:
        """Remove and return everything queued for a host."""
        while host.queue:
            entry = host.queue.pop()
            self._part_of(entry).size -= 1
            yield entry
        for part in host.behind:
            part.has_room_again()
        host.behind = frozenset()

    def asleep_after(self, moment: float, also: Set[str] = frozenset()) -> list[HostQueue]:
        """Hosts with something to do whose clock allows no request before `moment`, and which are not parked. Those in
        `also` have something to do that is not here."""
        later = {name for at, name in self._later if at > moment} | also
        return [
            host
            for host in self.hosts.values()
            if (host.queue or host.name in later) and host.clock.next_at > moment and not host.parked
        ]

    def clear_retries(self, host: HostQueue) -> list[FrontierUrl]:
        """Remove and return all URLs of a host that wait for a retry."""
        mine = [entry for _, entry in self._later.remove(host.name)]
        for entry in mine:
            self._part_of(entry).size -= 1
        return mine

    def retries(self, most: int) -> Iterator[tuple[float, str]]:
        """Some of the URLs that wait for a retry: the time, and the host."""
        return islice(self._later, most)

    def next_at(self) -> float | None:
        """The next time at which there may be a URL to take."""
        moments = [first[0] for first in (*self._due[:1], self._later.first()) if first is not None]
        return min(moments) if moments else None

    def read_ledger(self) -> None:
        """Read the ledger from its start."""
        for part in self._parts:
            part.more = True

    def next_to_read(self) -> LedgerPart | None:
        """The part of the ledger to read more of. They take turns."""
        return next((part for part in self._parts if part.wants_more()), None)

    def read_to(self, part: LedgerPart, cursor: int, *, end: bool) -> None:
        """A part of the ledger was read up to an id. `end`: that is the last one of the ledger."""
        part.read_to(cursor, end=end)
        self._parts = (self._own, self._foreign) if part.foreign else (self._foreign, self._own)

    def drop_idle(self, keep: int, now: float) -> list[str]:
        """Forget hosts with nothing to do and no delay to wait for, oldest first, until at most `keep` are left."""
        surplus = len(self.hosts) - keep
        if surplus <= 0:
            return []
        idle = [
            name
            for name, host in self.hosts.items()
            if not (host.queue or host.in_flight or host.due or host.parked or host.behind)
            and host.clock.next_at <= now
        ][:surplus]
        for name in idle:
            del self.hosts[name]
        return idle

    def _part_of(self, entry: FrontierUrl) -> LedgerPart:
        return self._foreign if is_foreign(entry) else self._own

    def _host_limit(self, part: LedgerPart) -> int:
        """A few hosts may use the whole window. With many hosts, each gets a share."""
        return max(self._per_host, part.window // (2 * len(self.hosts) or 1))

    def _has_room(self, host: HostQueue, part: LedgerPart) -> bool:
        queued = host.queue.size_of(foreign=part.foreign)
        if part.full:
            return queued < self._per_host // _SURE_PART and part.size < 2 * part.window
        return queued < self._host_limit(part)

    def _enqueue(self, host: HostQueue, entry: FrontierUrl, now: float) -> None:
        if self._claims and self._has_room(host, self._own):
            entry = self._with_claim(entry)
        host.queue.push(entry)
        self._part_of(entry).size += 1
        self._schedule(host, now)

    def _with_claim(self, entry: FrontierUrl) -> FrontierUrl:
        """The URL, as its own host has claimed it in the meantime."""
        if self._claims and is_foreign(entry) and (claim := self._claims.pop(entry.url)) is not None:
            return self._claimed(entry, claim)
        return entry

    def _may_go(self, host: HostQueue) -> bool:
        if not host.queue or host.parked or host.in_flight >= host.clock.at_once:
            return False
        return host.queue.allows(*self._levels(host))

    def _levels(self, host: HostQueue) -> tuple[float, float]:
        """The depths down to which own and foreign URLs of a host may be taken.

        A foreign URL deeper than `sure` may be on a shorter path too, which a page of its host has: it waits for those.
        """
        if self.level == inf:
            return inf, inf
        level = inf if self._alone and not host.in_flight else self.level
        if level <= self._sure:
            return level, level
        if host.in_flight or host.held or self._later.has(host.name):
            return level, self._sure
        return level, max(self._sure, min(level, host.queue.own_depth))

    def _schedule_all(self, now: float) -> None:
        for host in self.hosts.values():
            self._schedule(host, now)

    def _schedule(self, host: HostQueue, now: float) -> None:
        if host.due or not self._may_go(host):
            return
        host.due = True
        heappush(self._due, (max(now, host.clock.next_at), next(self._tie), host))

"""URLs whose answers had no room in a queue: before the isolated reader, or before the browsers. The answers are
dropped: the URLs are fetched again when there is room.

Meanwhile their hosts go on with other pages. An address with several such URLs waits: most of its pages may need this
queue, and would be fetched twice. URLs of a host that sleeps do not count for that: nobody waits for as long as a
host asks for.

A URL leaves when it comes back into the frontier, or ends with its host. `next_at` says when to look again if nothing
else happens: without it, a URL of a host that sleeps would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from silkline.crawl.address_limit import Address, PutOffCounts
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.host_heap import HostHeap
from silkline.crawl.isolated_reader import LEAST_BYTES
from silkline.crawl.url_queue import FrontierUrl

_SHORT_SLEEP: Final = 5.0
"""URLs of a host that sleeps for more seconds stay put off: they would keep the room from others."""
_LONGEST_COMING: Final = 30.0


class PutOff(NamedTuple):
    host: str
    address: Address | None
    entry: FrontierUrl
    size: int
    place: float
    number: int


class FullQueue(Protocol):
    """The queue that had no room."""

    @property
    def room(self) -> int:
        """Bytes that may still come."""

    def place_of(self, host: str) -> float:
        """When a further answer of this host would have its turn. Small is soon."""


class PutOffs:
    """`on_less` is called with an address that waits for fewer of its URLs. `counts_of` says where it counts them."""

    def __init__(
        self,
        frontier: Frontier,
        queue: FullQueue,
        on_less: Callable[[Address, float], None],
        counts_of: Callable[[Address], PutOffCounts] = attrgetter("unread_urls"),
    ) -> None:
        self._frontier = frontier
        self._queue = queue
        self._counts_of = counts_of
        self._on_less = on_less
        self._waiting: HostHeap[PutOff] = HostHeap()
        """Those that wait for room, by their turns. They count for their addresses."""
        self._asleep: HostHeap[PutOff] = HostHeap()
        """Those whose hosts sleep, by the moment when they may wake."""
        self._number = count()
        self._coming: dict[int, tuple[PutOff, float]] = {}
        """Those that are fetched again and have not arrived, by their ids, and since when. The room is theirs."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._asleep)

    @property
    def hosts_asleep(self) -> set[str]:
        return self._asleep.hosts

    def add(self, host: HostQueue, entry: FrontierUrl, size: int) -> None:
        place = self._queue.place_of(host.name)
        size = max(size, LEAST_BYTES)
        self._wait(PutOff(host.name, host.address, entry, size, place, next(self._number)))

    def let_in(self, now: float) -> None:
        """Fetch as many URLs again as the queue has room for, in the order of their turns."""
        while (first := self._asleep.first()) is not None and first[0] <= now:
            self._wait(self._asleep.pop())
        if not self._waiting:
            return
        for id, (_, since) in list(self._coming.items()):
            # It has ended without an answer, for example because its host was given up, or its host must wait now.
            if id not in self._frontier.held or now - since >= _LONGEST_COMING:
                self.arrived(id)
        room = self._queue.room - sum(put_off.size for put_off, _ in self._coming.values())
        while (first := self._waiting.first()) is not None:
            wakes_at = self._wakes_at(first[1], now)
            if wakes_at is None and first[1].size > room:
                return
            put_off = self._waiting.pop()
            if wakes_at is not None:
                self._asleep.push(wakes_at, put_off.number, put_off.host, put_off)
            else:
                room -= put_off.size
                self._come(put_off, now)
            self._count_less(put_off, now)

    def next_at(self) -> float | None:
        """When to call `let_in` again even if the queue gets no more room: a host wakes, or a URL that is fetched
        again did not arrive in time, and its room is for others."""
        asleep = self._asleep.first()
        moments = [] if asleep is None else [asleep[0]]
        if self._waiting and self._coming:
            moments.append(next(iter(self._coming.values()))[1] + _LONGEST_COMING)
        return min(moments) if moments else None

    def arrived(self, id: int) -> None:
        """The answer to a request for this URL arrived: it needs no more room, or asks for it itself."""
        put_off, _ = self._coming.pop(id, (None, 0.0))
        if put_off is not None and put_off.address is not None:
            self._counts_of(put_off.address).coming -= 1

    def clear_host(self, name: str, now: float) -> list[FrontierUrl]:
        """Remove and return all URLs of a host."""
        waiting = self._waiting.remove(name)
        for put_off in waiting:
            self._count_less(put_off, now)
        return [put_off.entry for put_off in (*waiting, *self._asleep.remove(name))]

    def wake(self, name: str) -> None:
        """The clock of a host allows a request earlier than before."""
        for put_off in self._asleep.remove(name):
            self._wait(put_off)

    def _wait(self, put_off: PutOff) -> None:
        if put_off.address is not None:
            self._counts_of(put_off.address).waiting += 1
        self._waiting.push(put_off.place, put_off.number, put_off.host, put_off)

    def _come(self, put_off: PutOff, now: float) -> None:
        self._coming[put_off.entry.id] = (put_off, now)
        if put_off.address is not None:
            self._counts_of(put_off.address).coming += 1
        self._frontier.put_back(put_off.host, put_off.entry, now)

    def _count_less(self, put_off: PutOff, now: float) -> None:
        if put_off.address is not None:
            self._counts_of(put_off.address).waiting -= 1
            self._on_less(put_off.address, now)

    def _wakes_at(self, put_off: PutOff, now: float) -> float | None:
        """When its host may get a request; None if that is soon."""
        host = self._frontier.hosts.get(put_off.host)
        return host.clock.next_at if host is not None and host.clock.next_at > now + _SHORT_SLEEP else None

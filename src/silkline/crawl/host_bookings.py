"""The time of hosts that this fetcher has booked. All jobs share the clock of a host (store/bookings.py).

A host with a delay gets requests only within a booking. A crawl books blocks of seconds, a `page` job single turns.
A block is extended before it ends. If another job has booked behind it, the next block comes after that job. The
leader makes the bookings of all fetchers in one statement (booking_batches.py). Times are those of `time.monotonic`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Final

from silkline.crawl.address_limit import Address
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.messages import Book, BookHost, Granted
from silkline.crawl.plan import Plan
from silkline.crawl.politeness import Booking
from silkline.model import host_wait as reasons

UNUSED: Final = 10.0
"""A host that was not booked for so many seconds counts as unused."""
_EXTEND_BEFORE: Final = 1.0
_BATCH: Final = 0.25
_SHORTEST: Final = 0.05
_LONGEST_TURN: Final = 1.0
_LONGEST_REST: Final = 60.0
_LONGEST_WAY: Final = 0.2
_LONGEST_SHARED: Final = 30.0
"""The longest delay that other jobs have to respect: the longest Crawl-delay that robots.txt can set. A job may choose
a longer one for itself, but it does not own the host."""


class HostBookings:
    """`send` gives a message to the leader; `on_open` is called when a host may get requests; `on_fewer` when fewer
    hosts of an address wait for a booking."""

    def __init__(
        self, plan: Plan, frontier: Frontier, send: Callable[[Book], None], on_open: Callable[[], None]
    ) -> None:
        self._block = plan.tuning.booking_seconds
        self._frontier = frontier
        self._send = send
        self._on_open = on_open
        self._spacing = min(plan.pace.delay, _LONGEST_SHARED) / plan.pace.per_address
        self._loop = asyncio.get_running_loop()
        self._owner = secrets.randbits(62)
        self._asking: dict[str, BookHost] = {}
        self._flush: asyncio.TimerHandle | None = None
        self._flush_at = 0.0
        self._unanswered: set[str] = set()
        self.on_fewer: Callable[[Address, float], None] = lambda address, now: None
        self._parked: dict[str, tuple[HostQueue, Address | None]] = {}
        self._turns: dict[str, list[asyncio.Future[None]]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closed = False
        self.waiting = 0
        """Coroutines in `turn`."""

    @property
    def unanswered(self) -> int:
        """Hosts that could get a request as soon as their booking is made."""
        return len(self._unanswered)

    @property
    def busy(self) -> bool:
        return bool(self._parked or self._turns)

    def may_send(self, host: HostQueue) -> bool:
        """Whether the time of the host is ours now. If not, the host is parked until it is."""
        if self._is_open(host, time.monotonic()):
            return True
        host.parked = reasons.BOOKED
        address = None if host.clock.quick else host.address
        if address is not None:
            address.asking += 1
        self._parked[host.name] = (host, address)
        return False

    def has_time(self, host: HostQueue) -> bool:
        """Whether `may_send` would ask for no booking."""
        return host.clock.delay <= 0 or (host.booking is not None and host.booking.covers(time.monotonic()))

    async def turn(self, host: HostQueue) -> bool:
        """Wait until the time of the host is ours. Returns whether there was a wait."""
        waited = False
        while not self._is_open(host, time.monotonic()):
            future = self._loop.create_future()
            self._turns.setdefault(host.name, []).append(future)
            self.waiting += 1
            try:
                waited = True
                await future
            finally:
                self.waiting -= 1
        return waited

    def rest(self, host: HostQueue) -> None:
        """The host asked us to wait: other jobs wait too, for a minute at most. Then they ask it themselves."""
        seconds = min(host.clock.next_at - self._loop.time(), _LONGEST_REST)
        if host.booking is not None and seconds > max(self._block, _LONGEST_TURN):
            self._asking[host.name] = BookHost(
                host.name, min(host.clock.delay, _LONGEST_SHARED), seconds, "", 0.0, kept=True
            )
            self._ask(host, host.booking, 0.0)

    def granted(self, message: Granted) -> None:
        """The leader has made bookings."""
        now = time.monotonic()
        for each in message.hosts:
            self._unanswered.discard(each.host)
            host = self._frontier.hosts.get(each.host)
            if host is None or host.booking is None:
                continue
            booking = host.booking
            booking.take(each.starts, each.ends - _margin(host), now)
            booking.behind, booking.idle = each.behind, each.idle
            if host.name in self._parked or host.name in self._turns:
                self._open_at(host, booking, now)

    def close(self) -> None:
        self._closed = True
        for timer in (self._flush, *self._timers.values()):
            if timer is not None:
                timer.cancel()

    def _is_open(self, host: HostQueue, now: float) -> bool:
        if host.clock.delay <= 0:
            return True
        booking = host.booking
        if booking is None:
            booking = host.booking = Booking()
        if booking.covers(now):
            if booking.ends - now < _EXTEND_BEFORE and host.clock.delay < self._block and host.queue:
                self._ask(host, booking, _BATCH)
            return True
        if booking.starts > now:
            self._open_at(host, booking, now)
        else:
            self._unanswered.add(host.name)
            self._ask(host, booking, 0.0)
        return False

    def _open_at(self, host: HostQueue, booking: Booking, now: float) -> None:
        if host.name not in self._timers and not self._closed:
            self._timers[host.name] = self._loop.call_later(max(0.0, booking.starts - now), self._open, host)

    def _open(self, host: HostQueue) -> None:
        """The time of the host has come: those who wait look again."""
        self._timers.pop(host.name, None)
        parked = self._parked.pop(host.name, None)
        if parked is not None:
            host.parked = ""
            self._frontier.wake(host, self._loop.time())
            if parked[1] is not None:
                parked[1].asking -= 1
                self.on_fewer(parked[1], self._loop.time())
        for future in self._turns.pop(host.name, ()):
            if not future.done():
                future.set_result(None)
        self._on_open()

    def _ask(self, host: HostQueue, booking: Booking, within: float) -> None:
        if not booking.asked and booking.next is None and host.name not in self._asking:
            booking.asked = True
            self._asking[host.name] = self._entry(host, booking)
        if not self._asking or self._closed:
            return
        at = self._loop.time() + within
        if self._flush is None or at < self._flush_at:
            if self._flush is not None:
                self._flush.cancel()
            self._flush_at = at
            self._flush = self._loop.call_later(within, self._send_all)

    def _send_all(self) -> None:
        self._flush = None
        asking, self._asking = self._asking, {}
        self._send(Book(self._owner, list(asking.values())))

    def _entry(self, host: HostQueue, booking: Booking) -> BookHost:
        """As much time as the queued URLs need, at most a block. A turn may be used a little late, and a request may
        reach the host a little later."""
        address, delay = host.address, host.clock.delay
        each = max(delay, address.backlog(self._loop.time()) if address is not None else 0.0)
        requests = 1 + min(len(host.queue), int(self._block / each))
        length = (requests - 1) * each + min(max(delay / 5, _SHORTEST), _LONGEST_TURN) + _margin(host)
        key = address.key if address is not None and self._spacing and not booking.paid else ""
        shared = min(delay, _LONGEST_SHARED)
        return BookHost(host.name, shared, length, key, requests * self._spacing if key else 0.0)


def _margin(host: HostQueue) -> float:
    """Seconds that a request may take to reach the host."""
    return min(host.clock.delay / 10, _LONGEST_WAY)

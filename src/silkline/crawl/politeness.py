"""When a host, or an address that many hosts share, may get the next request. Pure: the caller passes the time.

The delay of a host is the largest of three values: the delay of the crawl, the delay in its robots.txt, and the delay
that follows from its answers. A slow host gets a longer delay. For a host that fails, the delay doubles each time. A
host that answers 429 or 503 gets no request for as long as it asks. The response time is the median of the last
answers, not the last one. So one slow page changes nothing, and neither does a single error of a host that answers most
of the time.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

from silkline.crawl.plan import Pace
from silkline.model import wait as reasons

_REMEMBERED: Final = 9
"""Number of answers for the median. With this many, five slow answers are enough to notice that a host slows down."""
_STRAY: Final = 3
"""One of this many remembered answers may be an error before the delay of the host grows."""
_ROUNDING: Final = 0.002
"""The event loop counts in whole milliseconds, rounded down."""
_QUICK: Final = 3.0
"""A host that usually answers within so many seconds is quick."""
_QUICK_ANSWERS: Final = 10
"""For each second that an answer took longer, a host must give so many quick answers before it is quick again."""
_MOST_MISSING: Final = 1_200
"""Quick answers, as for two minutes: a host that was overloaded for an hour is quick again some minutes later."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_TROUBLES: Final = frozenset({reasons.ERRORS, reasons.REFUSED, reasons.RETRY_AFTER, reasons.ROBOTS_UNAVAILABLE})


class Clock:
    """The pace of one host."""

    __slots__ = (
        "_asleep",
        "_debt",
        "_last",
        "_penalized_at",
        "_penalty",
        "_usual",
        "crawl_delay",
        "failures",
        "next_at",
        "pace",
        "refusals",
        "trouble",
        "waited",
        "waited_in_all",
    )

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.crawl_delay = 0.0
        self.next_at = 0.0
        self.failures = 0
        self.refusals = 0
        self.waited = 0.0
        self.waited_in_all = 0.0
        self.trouble = ""
        self._asleep = (0.0, "", 0.0)
        self._last: list[float | None] = []  # seconds of each answer, None for an error
        self._usual = 0.0
        self._debt = 0.0  # quick answers that are missing before it counts as quick
        self._penalty = 0.0
        self._penalized_at = 0.0

    @property
    def at_once(self) -> int:
        """Requests this host may have in flight."""
        return 1 if self.crawl_delay or self._penalty else self.pace.per_host

    @property
    def delay(self) -> float:
        """Seconds from one request to the next."""
        adaptive = min(self.pace.patience * self._usual, self.pace.most)
        return max(self.pace.delay, self.crawl_delay, adaptive, self._penalty)

    @property
    def usual(self) -> float:
        """The usual response time of this host in seconds, from its last answers."""
        return self._usual

    @property
    def quick(self) -> bool:
        """Whether the host is known to answer soon: it has answered, with few slow answers, and its last requests did
        not fail."""
        return 0.0 < self._usual <= _QUICK and not self.failures and not self._debt

    def started(self, now: float) -> None:
        self.next_at = max(self.next_at, now + self.delay)

    def reached(self, sent: float, connected: float, first_byte: float) -> None:
        """A request was sent at `sent`, and reached the host when the connection was made, or up to a tenth of the
        delay later. The delay counts from there, not from our decision to send it. The other values count from
        `sent`; without an answer, `first_byte` is the time until the failure."""
        delay = self.delay
        way = min(first_byte, connected + delay / 10) + _ROUNDING if delay and first_byte else 0.0
        self.next_at = max(self.next_at, sent + way + delay)

    def answered(self, now: float, seconds: float, connected: float = 0.0, first_byte: float = 0.0) -> None:
        """The host answered normally, `seconds` after the request was sent."""
        self.failures = 0
        self.refusals = 0
        self.waited = 0.0
        self._remember(seconds)
        times = sorted(each for each in self._last if each is not None)
        self._usual = times[(len(times) - 1) // 2]
        missing = self._debt + (_QUICK_ANSWERS * (seconds - _QUICK) if seconds > _QUICK else -1.0)
        self._debt = min(max(0.0, missing), _MOST_MISSING)
        self.reached(now - seconds, connected, first_byte)
        if self._penalty:
            self._penalty = self._penalty / 2 if self._penalty > 0.1 else 0.0

    def failed(self, now: float, started: float) -> None:
        """The host did not answer, or answered with a server error, to a request that was sent at `started`."""
        self._remember(None)
        if _STRAY * self._last.count(None) <= len(self._last) and not self._penalty:
            self.failures += started >= self._penalized_at
            self._penalized_at = now
        elif self._penalize(now, started):
            self.failures += 1
        self.sleep_until(now + self._penalty, reasons.ERRORS, self._penalty)

    def slow_down(self, now: float, started: float) -> None:
        """The host refused one URL, which was requested at `started`: the delay doubles, as for a failing host."""
        self.failures += self._penalize(now, started)
        self.sleep_until(now + self._penalty, reasons.ERRORS, self._penalty)

    def refused(self, now: float, started: float, wait: float | None, longest: float) -> None:
        """The host asked us to wait: for `wait` seconds. If it gave no time, the wait grows up to `longest`."""
        if self._penalize(now, started):
            self.failures += 1
            self.refusals += 1
        pause = wait if wait is not None else self._penalty * 2 ** min(self.refusals, 10)
        seconds = wait if wait is not None else min(pause, longest)
        until = now + seconds
        more = seconds if self.next_at <= now else max(0.0, until - self.next_at)  # `until - now` may round up
        self.waited += more
        self.waited_in_all += more
        self.sleep_until(until, reasons.REFUSED if wait is None else reasons.RETRY_AFTER, seconds)

    def _remember(self, seconds: float | None) -> None:
        self._last.append(seconds)
        if len(self._last) > _REMEMBERED:
            del self._last[0]

    def _penalize(self, now: float, started: float) -> bool:
        """Double the delay. Requests that were in flight together and fail together count once."""
        if started < self._penalized_at:
            return False
        self._penalized_at = now
        self._penalty = min(max(2 * self._penalty, self.pace.delay, 0.1), max(self.pace.most, self.pace.delay))
        return True

    def sleep_until(self, moment: float, why: str, seconds: float = 0.0) -> None:
        """Allow no request before `moment`, for the reason `why`; `seconds` is the figure shown with the reason."""
        if moment > self.next_at:
            self.next_at = moment
            self._asleep = (moment, why, seconds)

    def waits_for(self) -> tuple[str, str, float]:
        """What determines `next_at`: the reason, the failure before it, and the figure in seconds shown with it."""
        until, why, seconds = self._asleep
        delay = self.delay
        if until >= self.next_at:
            pass
        elif self._penalty and delay == self._penalty:
            why, seconds = reasons.ERRORS, delay
        elif self.crawl_delay and delay == self.crawl_delay:
            why, seconds = reasons.CRAWL_DELAY, delay
        elif delay == self.pace.delay:
            why, seconds = reasons.DELAY, delay
        else:
            why, seconds = reasons.SLOW_ANSWERS, self._usual
        return why, self.trouble if why in _TROUBLES else "", seconds


class Booking:
    """What this fetcher knows of the time of one host: the current part and, behind other jobs, the next one."""

    __slots__ = ("asked", "behind", "ends", "idle", "next", "paid", "starts")

    def __init__(self) -> None:
        self.starts = self.ends = 0.0
        self.next: tuple[float, float] | None = None
        self.behind = ""
        """The job whose time comes before ours."""
        self.idle = 0.0
        """For how long the host was not booked before us."""
        self.asked = False
        self.paid = False
        """The time of its address is booked, and only that of the host has passed meanwhile."""

    def covers(self, now: float) -> bool:
        if now > self.ends and self.next is not None:
            (self.starts, self.ends), self.next = self.next, None
        return self.starts <= now <= self.ends

    def take(self, starts: float, ends: float, now: float) -> None:
        """More time was booked. It extends the current part, or comes behind other jobs."""
        self.asked = False
        if starts <= self.ends:
            self.ends = max(self.ends, ends)
        elif now <= self.ends:
            self.next = (starts, ends)
        else:
            self.starts, self.ends, self.next = starts, ends, None
        self.paid = self.starts > self.ends


MOST_UNREAD: Final = 4 << 20
MOST_PUT_OFF: Final = 2
SHOWN_PAGE: Final = 1 << 20
_KEPT: Final = 4
"""One of so many places of an address, and at least one, is kept for quick hosts, and the same for the others."""
_MOST_ASKING: Final = 4
_SILENT_AFTER: Final = 3
_MOST_SILENT: Final = 1_000
_SILENT_SECONDS: Final = 300.0
"""After so many connections in a row that timed out, new hosts do not try this port of the address for so long."""


def address_key(address: str) -> str:
    """The name of an address for the limits of addresses. Who has one IPv6 address has a /64, so all of it is one."""
    if ":" not in address:
        return address
    try:
        number = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if number.ipv4_mapped is not None:
        return str(number.ipv4_mapped)
    if number in _NAT64:  # each is another IPv4 address
        return str(IPv4Address(int(number) & 0xFFFFFFFF))
    return str(IPv6Network((int(number) >> 64 << 64, 64)))


class Counts:
    """URLs of an address whose answers had no room in a queue (put_offs.py)."""

    __slots__ = ("coming", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.coming = 0
        """Those that may be fetched now."""

    @property
    def many(self) -> bool:
        return self.waiting >= MOST_PUT_OFF and not self.coming


class Address:
    """The limits that all hosts with one address share: requests at the same time, bytes that wait to be read, and
    pages that wait for a browser or are in one.

    Without the last two, a host with large or slow pages would stop all others: the queues of large inputs and of pages
    for browsers are limited. Some of the requests at the same time are kept for quick hosts (`Clock.quick`): the names
    of an attacker may lead to the address of another site, to ports that do not answer.
    """

    __slots__ = (
        *("__weakref__", "_next_at", "_silent", "_spacing", "asking", "in_flight", "key", "least_unproven"),
        *("most", "most_shown", "most_unproven", "rests_until", "shown", "unproven", "unread", "unread_urls"),
        "unshown_urls",
    )

    def __init__(self, pace: Pace, share: int, key: str = "") -> None:
        """`share` is the number of fetchers. Each may use its part of the limit. `key`: its name in bookings, empty if
        only one host has it."""
        self.key = key
        self.most = max(1, pace.per_address // share)
        self.least_unproven = max(1, self.most // _KEPT)
        self.most_unproven = self.most
        """Places for hosts that are not known to be quick. Fewer as soon as there is a quick one."""
        self.in_flight = 0
        self.unproven = 0
        """Those of the requests in flight whose hosts were not known to be quick."""
        self.asking = 0
        """Hosts that are not known to be quick, and wait for a booking. Each books time of the address too."""
        self.rests_until = 0.0
        """Where no place can be kept, because there is only one, quick hosts have it for as long as another had it."""
        self.unread = 0
        """Bytes of its answers that wait to be read in another process."""
        self.unread_urls = Counts()
        """Those that had no room before the isolated reader."""
        self.unshown_urls = Counts()
        """Those that had no room before the browsers."""
        self.shown = 0
        """Bytes of its pages in browsers and before them; a page counts as `SHOWN_PAGE` at least."""
        self.most_shown = 16 * SHOWN_PAGE
        self._next_at = 0.0
        self._spacing = pace.delay * share / pace.per_address
        self._silent: dict[int, tuple[int, float]] = {}

    @property
    def full(self) -> bool:
        return self.in_flight >= self.most

    def full_for(self, *, quick: bool) -> bool:
        """Whether a host that is known to be quick, or another one, gets no place now."""
        return self.in_flight >= self.most or (not quick and self.unproven >= self.most_unproven)

    @property
    def crowded(self) -> bool:
        """So many hosts wait for a booking that a quick one would wait long for the next time of the address."""
        return self.asking >= _MOST_ASKING * self.most

    def enter(self, *, quick: bool) -> None:
        """A request takes a place."""
        self.in_flight += 1
        if quick:
            self.most_unproven = max(1, self.most - self.least_unproven)
        else:
            self.unproven += 1

    def leave(self, now: float, since: float, *, quick: bool) -> None:
        """A request that took its place at `since` gives it back."""
        self.in_flight -= 1
        if not quick:
            self.unproven -= 1
            if self.most == 1:
                self.rests_until = 2 * now - since

    @property
    def behind(self) -> bool:
        """Too many of its answers wait to be read."""
        return self.unread > MOST_UNREAD or self.unread_urls.many

    @property
    def unrendered(self) -> bool:
        """Too many of its pages wait for a browser."""
        return self.shown >= self.most_shown or self.unshown_urls.many

    def backlog(self, now: float) -> float:
        """Seconds that are reserved already."""
        return max(0.0, self._next_at - now)

    def reserve(self, now: float) -> float:
        """Reserve and return the next free moment."""
        moment = max(now, self._next_at)
        self._next_at = moment + self._spacing
        return moment

    # Ports that do not answer.

    def timed_out(self, port: int, now: float) -> None:
        """A connection to this port was not made in time."""
        self._silent[port] = (self._silent.get(port, (0, 0.0))[0] + 1, now + _SILENT_SECONDS)
        if len(self._silent) > _MOST_SILENT:
            del self._silent[next(iter(self._silent))]

    def reached(self, port: int) -> None:
        """A connection to this port was made."""
        if self._silent:
            self._silent.pop(port, None)

    def is_silent(self, port: int, now: float) -> bool:
        """Whether the last connections to this port all timed out."""
        number, until = self._silent.get(port, (0, 0.0))
        return number >= _SILENT_AFTER and now < until


def retry_delay(attempt: int, base: float, cap: float) -> float:
    """Seconds before a URL is tried again after its try number `attempt`."""
    return float(min(base * 4 ** max(0, attempt - 1), cap))

"""The limits that all hosts with one IP address share. Pure: the caller passes the time.

`host_gate` enforces them before a request, `request_place` when the request connects to another address.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

from silkline.crawl.plan import Pace

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
_NAT64: Final = IPv6Network("64:ff9b::/96")


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


class PutOffCounts:
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
        self.unread_urls = PutOffCounts()
        """Those that had no room before the isolated reader."""
        self.unshown_urls = PutOffCounts()
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

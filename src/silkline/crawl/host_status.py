"""Shows why the hosts of a fetcher wait. It runs at intervals, not per page, and checks a limited number of hosts.

A crawl may know more hosts than one run checks. The next run continues where this one stopped. The hosts that wait
longest are checked every time.
"""

from __future__ import annotations

from heapq import nlargest
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Final

from silkline.crawl.frontier import Frontier, HostQueue
from silkline.model import host_wait as reasons
from silkline.model.host_wait import Wait

SHOWN: Final = 20
_LOOKED_AT: Final = 500  # 1 ms of CPU
_LEAST: Final = 0.0001  # seconds for a page of a host that answers at once
_first: Final = itemgetter(0)
_left: Final = attrgetter("seconds_left")


class Lookout:
    """Keeps the names of the hosts that the crawl waits for most."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._place = 0
        self._names: list[str] = []

    def look(self, now: float, time_of_day: float) -> list[Wait]:
        """The longest waits, longest first. `now` is the clock of the frontier, `time_of_day` the wall clock."""
        hosts = self._frontier.hosts
        retries, retry_at = self._retries()
        seen = {name: hosts[name] for name in (*self._names, *retries) if name in hosts}
        for host in islice(hosts.values(), self._place, self._place + _LOOKED_AT):
            if host.queue:
                seen[host.name] = host
        self._place = self._place + _LOOKED_AT if self._place + _LOOKED_AT < len(hosts) else 0
        lasting = [
            (_seconds_left(host, retries.get(name, 0), retry_at.get(name, 0.0), now), name, host)
            for name, host in seen.items()
            if host.queue or name in retries
        ]
        shift = time_of_day - now
        found = [
            self._wait(host, retries.get(name, 0), retry_at.get(name, 0.0), left, now, shift)
            for left, name, host in nlargest(SHOWN, lasting, key=_first)
        ]
        self._names = [wait.host for wait in found]
        return found

    def _retries(self) -> tuple[dict[str, int], dict[str, float]]:
        """How many URLs of each host wait for a retry, and the time of the first retry."""
        number: dict[str, int] = {}
        first: dict[str, float] = {}
        for at, name in self._frontier.retries(_LOOKED_AT):
            number[name] = number.get(name, 0) + 1
            first[name] = min(at, first.get(name, at))
        return number, first

    def _wait(self, host: HostQueue, retries: int, retry_at: float, left: float, now: float, shift: float) -> Wait:
        reason, detail, seconds, at = self._reason(host, retry_at, now)
        return Wait(
            host=host.name,
            queued=len(host.queue) + retries,
            in_flight=host.in_flight,
            reason=reason,
            detail=detail,
            seconds=round(seconds, 3),
            next_at=None if at is None else round(at + shift, 3),
            seconds_left=round(left, 3),
        )

    def _reason(self, host: HostQueue, retry_at: float, now: float) -> tuple[str, str, float, float | None]:
        """The reason, the failure before it, the seconds of the reason, and the time when the wait ends."""
        clock, booking = host.clock, host.booking
        if booking is not None and booking.starts > now:
            return reasons.BOOKED, booking.behind, booking.starts - now, booking.starts
        if host.parked:
            return host.parked, "", 0.0, None
        if not host.queue and clock.next_at < retry_at:
            return reasons.PAGE_RETRY, "", 0.0, retry_at
        if self._frontier.waits_for_level(host):
            return reasons.LEVEL, "", 0.0, None
        if clock.next_at > now:
            return (*clock.waits_for(), clock.next_at)
        if host.in_flight >= clock.at_once:
            return reasons.BUSY, "", 0.0, None
        return reasons.TURN, "", 0.0, None


def _seconds_left(host: HostQueue, retries: int, retry_at: float, now: float) -> float:
    """An estimate of how long the queued URLs take."""
    clock = host.clock
    start = clock.next_at if host.queue else max(clock.next_at, retry_at)
    each = max(clock.delay, clock.usual) / clock.at_once
    return max(0.0, start - now) + (len(host.queue) + retries) * max(each, _LEAST)


def most_waiting(waits: list[Wait]) -> list[Wait]:
    """The hosts that delay the crawl most."""
    return nlargest(SHOWN, waits, key=_left)


def too_long(host: HostQueue, now: float, longest: float) -> str:
    """Why we give up a host that asked us to wait."""
    said = host.clock.trouble or "it"
    return f"{said} asks for {host.clock.next_at - now:.0f} s more, the longest wait is {longest:.0f} s"

"""Keeps a quarter of the request slots of a fetcher for hosts that are known to answer soon.

Requests for robots.txt, and pages of hosts that are new, slow or failing, use the other slots. Otherwise one attacker
with many hosts, each with an endless robots.txt or endless pages, would hold all slots, and the crawl would stop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from silkline.crawl.frontier import Frontier, HostQueue
from silkline.model import host_wait as reasons

_KEPT: Final = 4
"""One of so many slots is kept."""


class UnprovenHosts:
    """`introductions` returns how many requests for robots.txt are under way."""

    def __init__(self, slots: int, frontier: Frontier, introductions: Callable[[], int]) -> None:
        self._most = slots - slots // _KEPT
        self._frontier = frontier
        self._introductions = introductions
        self._in_flight = 0
        self._waiting: deque[HostQueue] = deque()

    @property
    def free(self) -> int:
        """Slots that these hosts may still use."""
        return self._most - self._introductions() - self._in_flight

    def wait(self, host: HostQueue) -> None:
        """Park the host until one of these slots is free."""
        host.parked = reasons.TURN
        self._waiting.append(host)

    def admit(self, now: float) -> None:
        """Let as many hosts try again as there are slots for them."""
        for _ in range(min(self.free, len(self._waiting)) if self._waiting else 0):
            host = self._waiting.popleft()
            host.parked = ""
            self._frontier.wake(host, now)

    def started(self, host: HostQueue) -> None:
        """A request for a page was started."""
        if not host.clock.quick:
            host.unproven += 1
            self._in_flight += 1

    def ended(self, host: HostQueue) -> None:
        if host.unproven:
            host.unproven -= 1
            self._in_flight -= 1

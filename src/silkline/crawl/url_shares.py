"""How the URLs that a `map` job may list are shared between the domains of its seeds. Pure: the caller passes the time.

A domain that has listed its share waits while another one, which has not, still has sitemaps. What those leave over is
for all. A domain of which no sitemap was read for a while holds up nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

PATIENCE: Final = 30.0
"""So long a domain holds up others without anything new. The time in which we let it wait does not count."""
MOST_HELD: Final = 120.0
"""So long it holds up others in all."""
EARNED: Final = 0.01
"""Each URL that it lists allows so many seconds more: a large site needs its time, and a slow trickle earns little."""
_LOOK_AGAIN: Final = 1.0


class UrlShares:
    """`waiting` has the number of sitemaps of each domain that are still to be read."""

    def __init__(self, most: int, domains: Iterable[str], now: float) -> None:
        self._most = most
        self._share = max(1, most // (len(set(domains)) or 1))
        self._began = now
        self._patient_until: dict[str, float] = {}
        self._asleep_until: dict[str, float] = {}
        self._holds_since: dict[str, float] = {}
        self._held_until: dict[str, float] = {}
        self.waiting: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.total = 0

    @property
    def over(self) -> bool:
        return self.total >= self._most

    def add(self, domain: str, number: int, now: float) -> None:
        """The domain lists so many new URLs, or none."""
        self.listed[domain] += number
        self.total += number
        if number:
            self.came_further(domain, now)

    def came_further(self, domain: str, now: float) -> None:
        """The domain listed new URLs, or named new sitemaps."""
        self._patient_until[domain] = max(now, self._asleep_until.get(domain, now)) + PATIENCE

    def sleeps(self, domain: str, now: float, until: float) -> None:
        """A host of the domain gets no request until then, because its clock says so."""
        known = max(now, self._asleep_until.get(domain, now))
        if until > known:
            self._patient_until[domain] = self._patience(domain) + until - known
            self._asleep_until[domain] = until

    def ended(self, domain: str) -> None:
        self.waiting[domain] -= 1
        if self.waiting[domain] <= 0:
            del self.waiting[domain]

    def room(self, domain: str, now: float) -> int:
        """How many more URLs the domain may list now."""
        left, own = self._most - self.total, self._share - self.listed[domain]
        kept = sum(max(0, self._share - self.listed[other]) for other in self._others(domain, now))
        return max(min(own, left), left - kept, 0)

    def must_wait(self, domain: str, now: float) -> bool:
        """Whether no sitemap of the domain is to be requested now. Cheap: thousands of them may ask again and again."""
        if self._held_until.get(domain, now) > now:
            return True
        if self.listed[domain] < self._share or self.over or self.room(domain, now):
            return False
        self._held_until[domain] = now + _LOOK_AGAIN
        for other in self._others(domain, now):
            if self.listed[other] < self._share:
                self._holds_since.setdefault(other, now)
        return True

    def _others(self, domain: str, now: float) -> list[str]:
        return [each for each in self.waiting if each != domain and self._may_hold(each, now)]

    def _may_hold(self, domain: str, now: float) -> bool:
        """Whether it may still hold up others."""
        in_all = self._holds_since.get(domain, now) + MOST_HELD + EARNED * self.listed[domain]
        return now < min(self._patience(domain), in_all)

    def _patience(self, domain: str) -> float:
        return self._patient_until.get(domain, self._began + PATIENCE)

"""How the URLs that a `map` job may list are shared between the domains of its seeds. Pure: the caller passes the time.

A domain that has listed its share waits while another one, which has not, still has sitemaps. What those leave over is
for all. A domain of which no sitemap was read for a while holds up nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

PATIENCE: Final = 30.0
_LOOK_AGAIN: Final = 1.0


class UrlShares:
    """`waiting` has the number of sitemaps of each domain that are still to be read."""

    def __init__(self, most: int, domains: Iterable[str], now: float) -> None:
        self._most = most
        self._share = max(1, most // (len(set(domains)) or 1))
        self._began = now
        self._read_at: dict[str, float] = {}
        self._held_until: dict[str, float] = {}
        self.waiting: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.total = 0

    @property
    def over(self) -> bool:
        return self.total >= self._most

    def add(self, domain: str, number: int) -> None:
        """The domain lists more URLs."""
        self.listed[domain] += number
        self.total += number

    def read(self, domain: str, now: float) -> None:
        """A sitemap or the robots.txt of the domain was read."""
        self._read_at[domain] = now

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
        return True

    def _others(self, domain: str, now: float) -> list[str]:
        read_at, began = self._read_at, self._began
        return [each for each in self.waiting if each != domain and now - read_at.get(each, began) < PATIENCE]

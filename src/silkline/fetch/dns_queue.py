"""Chooses the next name to look up, and the names to skip for now. Pure: time is an argument.

A name server that never answers occupies a thread for 10 seconds or more for each of its names. Names of other domains
must not wait for it. So the domains take turns, each domain has only a few look-ups at once, slow domains get only a
part of the threads, and a zone that did not answer for several names in a row is not asked for a while.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Final

_MOST_DOMAINS: Final = 50_000
_SILENT_NAMES: Final = 8
"""Names of a zone without an answer in a row, after which the zone counts as silent."""


def last_two_labels(host: str) -> str:
    """The domain of a host in most cases. A list of public suffixes is more exact."""
    return ".".join(host.rstrip(".").rsplit(".", 2)[-2:])


class NameQueue:
    """Waiting names by domain. At most `share` names of one domain are being looked up at once."""

    def __init__(self, share: int) -> None:
        self._share = share
        self._waiting: dict[str, deque[str]] = {}
        self._out: dict[str, int] = {}
        self._turns: OrderedDict[str, None] = OrderedDict()
        self._slow_turns: OrderedDict[str, None] = OrderedDict()
        self._slow: OrderedDict[str, None] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, domain: str, name: str) -> None:
        self._waiting.setdefault(domain, deque()).append(name)
        self._let_in(domain)

    def take(self, *, slow: bool) -> str | None:
        """The next name of a domain that was slow, or of one that was not."""
        turns = self._slow_turns if slow else self._turns
        if not turns:
            return None
        domain, _ = turns.popitem(last=False)
        waiting = self._waiting[domain]
        name = waiting.popleft()
        self._out[domain] = self._out.get(domain, 0) + 1
        if not waiting:
            del self._waiting[domain]
        self._let_in(domain)
        return name

    def ended(self, domain: str) -> None:
        """A look-up of this domain has ended."""
        self._out[domain] -= 1
        if not self._out[domain]:
            del self._out[domain]
        self._let_in(domain)

    def drop(self, domain: str) -> list[str]:
        """Remove all waiting names of a domain."""
        self._leave(domain)
        return list(self._waiting.pop(domain, ()))

    def drop_all(self) -> list[str]:
        return [name for domain in list(self._waiting) for name in self.drop(domain)]

    def was_slow(self, domain: str) -> None:
        if domain not in self._slow and len(self._slow) >= _MOST_DOMAINS:
            self.was_quick(next(iter(self._slow)))
        self._slow[domain] = None
        self._leave(domain)
        self._let_in(domain)

    def was_quick(self, domain: str) -> None:
        if domain in self._slow:
            del self._slow[domain]
            self._leave(domain)
            self._let_in(domain)

    def _let_in(self, domain: str) -> None:
        if domain in self._waiting and self._out.get(domain, 0) < self._share:
            (self._slow_turns if domain in self._slow else self._turns).setdefault(domain)

    def _leave(self, domain: str) -> None:
        self._turns.pop(domain, None)
        self._slow_turns.pop(domain, None)


class SilentZones:
    """Zones whose name servers do not answer.

    Each zone between a name and its domain is counted separately: one silent zone does not mean that the whole domain
    is silent. Several silent zones make the zone above them silent.
    """

    def __init__(self, domain_of: Callable[[str], str], seconds: float) -> None:
        self._domain_of = domain_of
        self._seconds = seconds
        self._zones: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def covers(self, host: str, now: float) -> bool:
        """Whether a host is in a silent zone."""
        if not self._zones:
            return False
        return any(self._is_silent(zone, now) for zone in self._zones_of(host))

    def no_answer(self, host: str, now: float) -> bool:
        """Record that a host got no answer. Returns whether a zone became silent."""
        became_silent = False
        for zone in self._zones_of(host):
            number = self._zones.pop(zone, (0, 0.0))[0] + 1
            self._zones[zone] = (number, now + self._seconds)
            if len(self._zones) > _MOST_DOMAINS:
                self._zones.popitem(last=False)
            if number != _SILENT_NAMES:
                break
            became_silent = True  # counts as one name in the zone above
        return became_silent

    def answered(self, host: str) -> None:
        if self._zones:
            for zone in self._zones_of(host):
                self._zones.pop(zone, None)

    def _is_silent(self, zone: str, now: float) -> bool:
        number, until = self._zones.get(zone, (0, 0.0))
        return number >= _SILENT_NAMES and now < until

    def _zones_of(self, host: str) -> Iterator[str]:
        """The zone that a host is in, the one above it, and so on up to its domain."""
        domain = self._domain_of(host)
        if host == domain:
            yield domain
            return
        zone = host
        while zone != domain and "." in zone:
            zone = zone.partition(".")[2]
            yield zone

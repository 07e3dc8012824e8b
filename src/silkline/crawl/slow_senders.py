"""Which senders (registrable domains, and addresses) have pages that take long to read. They are read in isolation,
where senders take turns by the time that they used (reading_turns.py): otherwise they would take the time of others.

While several senders are slow, the first large page of every other domain is read there too: otherwise each of a
hundred hostile domains would hold up the others once.

Only while somebody else has pages that are quick: in a crawl of one heavy site, or with a page hook that is slow for
every page, nobody suffers, and all parsers stay in use. Pure: the caller brings the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from silkline.crawl.reading_turns import Sender
from silkline.model.url import host_of

QUICK_UNTIL_TRUSTED: Final = 20
"""After so many quick pages a sender is read like the others again, if its slowest page took half a second or less."""
QUICK_FOR_A_SECOND: Final = 40
"""The same for each second of a slower page: otherwise 20 quick pages would pay for one that takes half a minute."""
MOST_QUICK: Final = 1200
"""For 30 seconds: a process that reads for longer is killed. One that was taken over may say any time."""
SUFFERS_FOR: Final = 60.0
"""Seconds for which a sender with a quick page counts as somebody who would suffer."""
MOST_REMEMBERED: Final = 10_000
LARGE_PAGE: Final = 64 << 10
"""Bytes. Smaller pages are seldom slow."""
MANY_SLOW: Final = 4
"""With this many slow domains and addresses, others must prove that they are quick."""
_ENOUGH: Final = 3
"""Quick senders to remember. No two of them share a domain or an address, so at most two of them belong to any slow
sender: many hosts of one sender cannot make the others forgotten."""
_LOOK_AGAIN: Final = 10.0
"""Seconds for which the quick senders need no update."""


class SlowSenders:
    """`sender_of` says to whom a host belongs."""

    def __init__(self, sender_of: Callable[[str], Sender], clock: Callable[[], float] = time.monotonic) -> None:
        self._sender_of = sender_of
        self._clock = clock
        self._left: dict[str, int] = {}
        """How many quick pages each slow domain or address still needs. The longest unseen is first."""
        self._proven: dict[str, int] = {}
        """Domains whose last large page was quick. The longest unseen is first."""
        self._quick: list[tuple[Sender, float]] = []
        """Senders with a quick page, and when that was, oldest first."""
        self._look_at = 0.0
        self._senders: dict[str, Sender] = {}
        """Those of hosts that were asked for lately."""
        self._noted: dict[str, float] = {}
        """Hosts with a quick page, and until when they need not be noted again."""

    def __bool__(self) -> bool:
        return bool(self._left)

    def note(self, url: str, size: int, seconds: float) -> None:
        """A page of this size took so long to read. 0: it was quick."""
        if seconds:
            self._add(self._sender(host_of(url)), seconds)
            return
        if size > LARGE_PAGE:
            _renew(self._proven, self._sender(host_of(url)).domain, 0)
        if self._left:
            self._take_one(self._sender(host_of(url)))
        if (now := self._clock()) >= self._look_at and self._noted.get(host := host_of(url), now) <= now:
            self._remember_quick(host, now)

    def includes(self, url: str, size: int) -> bool:
        """Whether a page is to be read in isolation: its sender is slow or may be slow, and others would suffer."""
        if not self._left:
            return False
        sender = self._sender(host_of(url))
        known = sender.domain in self._left or sender.address in self._left
        if not known and (size <= LARGE_PAGE or len(self._left) < MANY_SLOW or sender.domain in self._proven):
            return False
        since = self._clock() - SUFFERS_FOR
        return any(when >= since and not _same(other, sender) for other, when in self._quick)

    def _sender(self, host: str) -> Sender:
        if (known := self._senders.get(host)) is not None:
            return known
        sender = self._sender_of(host)
        if sender.address:  # otherwise it may become known
            if len(self._senders) >= MOST_REMEMBERED:
                self._senders.clear()
            self._senders[host] = sender
        return sender

    def _add(self, sender: Sender, seconds: float) -> None:
        self._proven.pop(sender.domain, None)
        needed = int(min(max(QUICK_UNTIL_TRUSTED, QUICK_FOR_A_SECOND * seconds), MOST_QUICK))
        for name in _names(sender):
            _renew(self._left, name, max(needed, self._left.get(name, 0)))

    def _take_one(self, sender: Sender) -> None:
        if sender.domain not in self._left and sender.address not in self._left:
            return
        for name in self._left.keys() & _names(sender):
            self._left[name] -= 1
            if not self._left[name]:
                del self._left[name]

    def _remember_quick(self, host: str, now: float) -> None:
        """It replaces those who share its domain or address."""
        sender = self._sender(host)
        if len(self._noted) >= MOST_REMEMBERED:
            self._noted.clear()
        self._noted[host] = now + _LOOK_AGAIN
        others = [(each, when) for each, when in self._quick if not _same(each, sender)]
        self._quick = [*others, (sender, now)][-_ENOUGH:]
        if len(self._quick) == _ENOUGH:
            self._look_at = self._quick[0][1] + _LOOK_AGAIN


def _renew(remembered: dict[str, int], name: str, value: int) -> None:
    """Put it at the end. The first ones are forgotten."""
    remembered.pop(name, None)
    remembered[name] = value
    if len(remembered) > MOST_REMEMBERED:
        del remembered[next(iter(remembered))]


def _names(sender: Sender) -> set[str]:
    """Domains and addresses are together, as in `ReadingTurns`: the domain of an IP address is the address."""
    return {sender.domain, sender.address} - {""}


def _same(one: Sender, other: Sender) -> bool:
    return not _names(one).isdisjoint(_names(other))

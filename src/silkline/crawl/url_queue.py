"""The queued URLs of one host, breadth first, in two parts: its own, and those that only pages of other hosts link to.

The two parts take turns. Otherwise a page with a thousand links to another host would put them before all pages of that
host that are deeper. Foreign links that fail get fewer turns: the host may be well, and only these paths of it not.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Final, NamedTuple

from silkline.crawl.sitemap_limits import SITEMAP_VIAS, is_named_by_others
from silkline.model.ledger import FOREIGN

MOST_PAUSE: Final = 64
"""After many failures, one foreign URL for this many own ones."""


class FrontierUrl(NamedTuple):
    """A URL to fetch. `chain` has the URLs that redirected to it, first to last, separated by blanks."""

    rank: float
    id: int
    url: str
    depth: int
    attempts: int = 0
    chain: str = ""
    via: str = ""
    put_off: int = 0
    """How often it was tried without counting an attempt, because the failure was our own."""


def is_foreign(entry: FrontierUrl) -> bool:
    """Whether only other hosts say that this URL exists."""
    return entry.via == FOREIGN or (entry.via in SITEMAP_VIAS and is_named_by_others(entry.chain))


class UrlQueue:
    """Its length is the number of URLs."""

    __slots__ = ("_foreign", "_own", "_pause", "_until_foreign")

    def __init__(self) -> None:
        self._own: list[FrontierUrl] = []
        self._foreign: list[FrontierUrl] = []
        self._pause = 1
        self._until_foreign = 0
        """So many own URLs come before the next foreign one."""

    def __len__(self) -> int:
        return len(self._own) + len(self._foreign)

    def __iter__(self) -> Iterator[FrontierUrl]:
        """All URLs, in no order."""
        return chain(self._own, self._foreign)

    @property
    def has_own(self) -> bool:
        return bool(self._own)

    def push(self, entry: FrontierUrl) -> None:
        heappush(self._foreign if is_foreign(entry) else self._own, entry)

    def allows(self, level: float) -> bool:
        """Whether there is a URL at this depth or above it."""
        own, foreign = self._own, self._foreign
        return (bool(own) and own[0].depth <= level) or (bool(foreign) and foreign[0].depth <= level)

    def pop(self, level: float = inf) -> FrontierUrl:
        """Remove and return the next URL at this depth or above it. There must be one."""
        own, foreign = self._own, self._foreign
        if not own or own[0].depth > level:
            return heappop(foreign)
        if foreign and foreign[0].depth <= level:
            if not self._until_foreign:
                self._until_foreign = self._pause
                return heappop(foreign)
            self._until_foreign -= 1
        return heappop(own)

    def note(self, entry: FrontierUrl, *, failed: bool) -> None:
        """The host answered the request for a URL, or failed."""
        if is_foreign(entry):
            self._pause = min(2 * self._pause, MOST_PAUSE) if failed else 1

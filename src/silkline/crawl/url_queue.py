"""The queued URLs of one host, breadth first, in two parts: its own, and those that only pages of other hosts link to.

The two parts take turns. Otherwise a page with a thousand links to another host would put them before all pages of that
host that are deeper. Foreign links that fail, or lead to no page (404), get fewer turns: the host may be well, and only
these paths of it not.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Final, NamedTuple

from silkline.crawl.sitemap_limits import SITEMAP_VIAS, is_named_by_others, level_of, named_by_host
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


class Claim(NamedTuple):
    """How the host of a URL links to it. So far only other hosts did."""

    depth: int
    via: str
    chain: str


def claimed(entry: FrontierUrl, claim: Claim) -> FrontierUrl:
    """A foreign URL after its own host has linked to it. A sitemap stays one.

    It has the way of its own host now: the redirects and indexes of others use up none of its limits.
    """
    is_sitemap = claim.via in SITEMAP_VIAS
    if entry.via not in SITEMAP_VIAS:
        how, way = ("link", "") if is_sitemap else (claim.via, claim.chain)
    else:
        is_shorter = is_sitemap and level_of(claim.chain) <= level_of(entry.chain)
        how, way = entry.via, claim.chain if is_shorter else named_by_host(entry.chain)
    depth = claim.depth
    return entry._replace(rank=min(entry.rank, depth), depth=min(entry.depth, depth), chain=way, via=how)


class UrlQueue:
    """Its length is the number of URLs."""

    __slots__ = ("_foreign", "_own", "_pause", "_until_foreign", "_waiting")

    def __init__(self) -> None:
        self._own: list[FrontierUrl] = []
        self._foreign: list[FrontierUrl] = []
        self._waiting: dict[str, FrontierUrl] = {}
        """The foreign ones by URL. What was claimed stays in the heap until it comes first."""
        self._pause = 1
        self._until_foreign = 0
        """So many own URLs come before the next foreign one."""

    def __len__(self) -> int:
        return len(self._own) + len(self._waiting)

    def __iter__(self) -> Iterator[FrontierUrl]:
        """All URLs, in no order."""
        return chain(self._own, self._waiting.values())

    def size_of(self, *, foreign: bool) -> int:
        """The number of its foreign URLs, or of its own ones."""
        return len(self._waiting if foreign else self._own)

    @property
    def has_own(self) -> bool:
        return bool(self._own)

    @property
    def own_depth(self) -> float:
        """The smallest depth of its own URLs."""
        return self._own[0].depth if self._own else inf

    def push(self, entry: FrontierUrl) -> None:
        if is_foreign(entry):
            self._waiting[entry.url] = entry
            heappush(self._foreign, entry)
        else:
            heappush(self._own, entry)

    def claim(self, url: str) -> FrontierUrl | None:
        """Remove a foreign URL, because its host links to it too."""
        return self._waiting.pop(url, None)

    def allows(self, level: float, foreign_level: float | None = None) -> bool:
        """Whether there is a URL at this depth or above it; the foreign ones may have another limit."""
        if self._own and self._own[0].depth <= level:
            return True
        foreign = self._first_foreign()
        return foreign is not None and foreign.depth <= (level if foreign_level is None else foreign_level)

    def pop(self, level: float = inf, foreign_level: float | None = None) -> FrontierUrl:
        """Remove and return the next URL that `allows` means. There must be one."""
        own, foreign = self._own, self._first_foreign()
        if not own or own[0].depth > level:
            return self._pop_foreign()
        if foreign is not None and foreign.depth <= (level if foreign_level is None else foreign_level):
            if not self._until_foreign:
                self._until_foreign = self._pause
                return self._pop_foreign()
            self._until_foreign -= 1
        return heappop(own)

    def _first_foreign(self) -> FrontierUrl | None:
        heap, waiting = self._foreign, self._waiting
        while heap and waiting.get(heap[0].url) is not heap[0]:
            heappop(heap)
        return heap[0] if heap else None

    def _pop_foreign(self) -> FrontierUrl:
        entry = heappop(self._foreign)
        del self._waiting[entry.url]
        return entry

    def note(self, entry: FrontierUrl, *, failed: bool) -> None:
        """The host answered the request for a URL, or failed, or has no such page."""
        if is_foreign(entry):
            self._pause = min(2 * self._pause, MOST_PAUSE) if failed else 1

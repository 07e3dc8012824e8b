"""How deep fetchers may go at the moment, in a crawl with a limit on depth. Pure.

Such a crawl goes level by level, so that every URL is found by its shortest path. Otherwise a page that is first found
too deep, and later on a shorter path, would be missing. If the rest of a level makes no progress for a while, for
example because a host asked us to wait, the next level starts anyway.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

PATIENCE: Final = 10.0


class Levels:
    """Counts the pending URLs at each depth. `known`: whether it was told about all of them."""

    def __init__(self, *, limited: bool, now: float, shared: bool = False) -> None:
        self._shared = 0 if shared else None
        self._settled = 0
        self._pending: Counter[int] = Counter()
        self._found: Counter[int] = Counter()
        self._moved_at = now
        self.known = True
        self.current: int | None = 0 if limited else None

    def add(self, depth: int, urls: int = 1) -> None:
        self._pending[depth] += urls
        self._found[depth] += urls

    def end(self, depth: int, now: float) -> None:
        self._pending[depth] -= 1
        self._moved_at = now

    def move(self, before: int, depth: int) -> None:
        """A shorter path to a pending URL was found."""
        for urls in (self._pending, self._found):
            urls[before] -= 1
            urls[depth] += 1

    def sure(self) -> int:
        """The lowest depth at which something may be pending: no shorter path will be found to what is below it."""
        known = (self.current, self.lowest, self._shared)
        return min((depth for depth in known if depth is not None), default=0)

    def finished(self) -> int:
        """The depth up to which nothing is pending, for the log. -1: none, or unknown."""
        if not self.known:
            return -1
        first = min((depth for depth, urls in self._pending.items() if urls > 0), default=None)
        return first - 1 if first is not None else max(self._found, default=-1)

    def found(self, depth: int) -> int:
        """How many URLs to fetch this attempt found at a depth."""
        return self._found[depth]

    @property
    def lowest(self) -> int | None:
        """The lowest depth with a pending URL."""
        return min((depth for depth, urls in self._pending.items() if urls > 0), default=None)

    def share(self, level: int | None, settled: int, now: float) -> None:
        """In a shard: the lowest depth with something to do in all shards, and how many URLs they have settled."""
        if level is not None:
            self._shared = level
        if settled != self._settled:
            self._settled, self._moved_at = settled, now

    def advance(self, now: float) -> bool:
        """Whether the level rose."""
        if self.current is None:
            return False
        deepest = max((depth for depth, urls in self._pending.items() if urls > 0), default=self.current)
        level = self.current
        allowed = deepest if self._shared is None else min(deepest, self._shared)
        while level < allowed and not self._pending[level]:
            level += 1
        if level == self.current and level < deepest and now - self._moved_at > PATIENCE:
            level += 1
            self._moved_at = now
        rose = level > self.current
        self.current = max(level, self.current)
        return rose

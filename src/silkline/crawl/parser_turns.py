"""The pages that wait for a parser, and their order. Pure: the caller says how long each reading took.

Addresses and registrable domains take turns, as in reading_turns.py: a domain whose pages are slow waits until the
others had as much time. Here a page costs a few dictionary operations, however many hosts wait: in an ordinary crawl
every page may wait for a moment.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

from silkline.crawl.reading_turns import Sender, add_time, add_used_time

_USUAL: Final = 0.125
"""Seconds that every page counts. Only slow readings say how long they took."""

Item = TypeVar("Item")


class ParserTurns(Generic[Item]):
    """The pages of one address wait in one queue, in order of arrival."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[Sender, Item]]] = {}
        self._heap: list[tuple[float, int, str]] = []
        """When the turn of each queue comes. It may be later by now, because of its first page or of slow readings."""
        self._number = count()
        self._now = 0.0
        self._turns: dict[str, float] = {}
        """When the next turn of each domain and address comes, as in `ReadingTurns`."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, sender: Sender, item: Item) -> None:
        name = sender.address or sender.domain
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = deque()
            heappush(self._heap, (self._turn(sender, self._now), next(self._number), name))
        queue.append((sender, item))
        self._length += 1

    def take(self) -> Item:
        """The oldest page of the address whose turn it is."""
        while True:
            at, _, name = heappop(self._heap)
            queue = self._queues[name]
            turn = self._turn(queue[0][0], at)
            if turn <= at or not self._heap or turn <= self._heap[0][0]:
                break
            heappush(self._heap, (turn, next(self._number), name))
        self._now = max(self._now, turn)
        self._length -= 1
        sender, item = queue.popleft()
        add_time(self._turns, sender, turn, _USUAL)
        if queue:
            heappush(self._heap, (self._turn(queue[0][0], turn), next(self._number), name))
        else:
            del self._queues[name]
        # Time passes by the share of each sender: otherwise new ones would always be first.
        self._now += _USUAL / (1 + len(self._queues))
        return item

    def was_slow(self, sender: Sender, seconds: float) -> None:
        """The reading of a page took so long."""
        add_used_time(self._turns, sender, self._now, seconds)
        others = sum(at <= self._now for at, _, _ in self._heap)
        if others:
            self._now += seconds / (1 + others)

    def _turn(self, sender: Sender, since: float) -> float:
        turns = self._turns
        return max(since, turns.get(sender.domain, 0.0), turns.get(sender.address, 0.0))

"""A heap of things that belong to hosts. All things of one host can be removed, without a look at those of others.

Pure. Removed things stay in the heap until they come first, or until they are more than half of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

_FEW: Final = 64
T = TypeVar("T")


class _Cell(Generic[T]):
    __slots__ = ("host", "item", "removed")

    def __init__(self, host: str, item: T) -> None:
        self.host = host
        self.item = item
        self.removed = False


class HostHeap(Generic[T]):
    """Sorted by `at`, then by `order`."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, _Cell[T]]] = []
        self._of_host: dict[str, dict[int, _Cell[T]]] = {}
        self._tie = count()
        self._removed = 0

    def __len__(self) -> int:
        return len(self._heap) - self._removed

    def __iter__(self) -> Iterator[tuple[float, str]]:
        """When each thing is due, and its host, in no order."""
        return ((at, cell.host) for at, _, _, cell in self._heap if not cell.removed)

    @property
    def hosts(self) -> set[str]:
        return set(self._of_host)

    def has(self, host: str) -> bool:
        return host in self._of_host

    def push(self, at: float, order: int, host: str, item: T) -> None:
        tie, cell = next(self._tie), _Cell(host, item)
        self._of_host.setdefault(host, {})[tie] = cell
        heappush(self._heap, (at, order, tie, cell))

    def first(self) -> tuple[float, T] | None:
        """The first thing, and when it is due."""
        heap = self._heap
        while heap and heap[0][3].removed:
            heappop(heap)
            self._removed -= 1
        return (heap[0][0], heap[0][3].item) if heap else None

    def pop(self) -> T:
        """Take the first thing out."""
        if self.first() is None:
            raise IndexError("the heap is empty")
        _, _, tie, cell = heappop(self._heap)
        mine = self._of_host[cell.host]
        del mine[tie]
        if not mine:
            del self._of_host[cell.host]
        return cell.item

    def remove(self, host: str) -> list[T]:
        """Take out all things of a host."""
        cells = list(self._of_host.pop(host, {}).values())
        for cell in cells:
            cell.removed = True
        self._removed += len(cells)
        if self._removed > len(self._heap) // 2 + _FEW:
            self._heap = [each for each in self._heap if not each[3].removed]
            heapify(self._heap)
            self._removed = 0
        return [cell.item for cell in cells]

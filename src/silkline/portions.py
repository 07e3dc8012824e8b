"""Cuts a long series into portions of a limited number and size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def portions_of(items: Iterable[Item], most: int, size_of: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Some items at a time: at most `most`, and no further one after their sizes have reached `limit`."""
    some: list[Item] = []
    size = 0
    for item in items:
        some.append(item)
        size += size_of(item)
        if len(some) >= most or size >= limit:
            yield some
            some, size = [], 0
    if some:
        yield some

"""Lists that are read in parts: as pages with a cursor, or as JSON lines. Each part takes limited time and memory.

A page ends early when it gets large, or when looking for its items took long; its cursor is where the next one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from silkline.api.answer_models import to_json
from silkline.export.large_rows import LargeRow
from silkline.export.limited_reads import CHUNK_BYTES, limited_reads
from silkline.model.field_filter import Condition, has_all
from silkline.store.url_view import ResultView

PAGE_BYTES = 2 << 20  # a page ends before the item that would make it larger; its first item may be larger
FIRST, CHUNK = 4, 20  # items that are read at once, at first and at most: one may have 20 MB
LOOKED_AT = 5_000  # results that one request with a filter reads at most
LARGE_READS = 8  # of these, reads that had fewer items because they are large
LOOKING = 1.0  # seconds after which a page ends with what it has
Item = TypeVar("Item")
# From a cursor and a number: items, each with its cursor. Fewer, if they are large; none, after the last one.
Read = Callable[[int, int], list[tuple[int, Item]]]
Clock = Callable[[], float]
Announce = Callable[[int], LargeRow | None]
"""From a cursor: the announcement of the next item, if it is large."""


def none_is_large(_after: int) -> None:
    """Announces nothing."""


def chosen_from(
    read: Read[ResultView], after: int, wanted: int, conditions: Sequence[Condition], clock: Clock = time.monotonic
) -> tuple[list[ResultView], str | None]:
    """The results with these conditions, and the cursor of the next page. A page may have few: each request reads a
    limited number of results, and looks for a limited time."""
    items: list[ResultView] = []
    size, large, give_up = 0, 0, clock() + LOOKING
    for _ in range(0, LOOKED_AT, CHUNK):
        found = read(after, CHUNK)
        large += len(found) < CHUNK
        for id, item in found:
            if has_all(conditions, item.data):
                more = len(to_json(item))
                if items and size + more > PAGE_BYTES:
                    return items, str(after)
                items.append(item)
                size += more
            after = id
            if len(items) == wanted or clock() >= give_up:
                return items, str(after)
        if not found:
            return items, None
        if large == LARGE_READS:
            break
    return items, str(after)


def chosen_lines(
    read: Read[ResultView],
    after: int,
    conditions: Sequence[Condition],
    limit: int = CHUNK_BYTES,
    announce: Announce = none_is_large,
) -> Generator[bytes | LargeRow, None, None]:
    """The results with these conditions as JSON lines. Yields after each result, with nothing if there is nothing yet.

    Results that were read but do not fit are dropped before the client gets the others, and read again later.
    """
    number = FIRST
    while True:
        if (large := announce(after)) is not None:
            yield large
            number = 1  # the others would stay in memory with it
        if not (found := read(after, number)):
            return
        found.reverse()
        lines: list[bytes] = []
        size = 0
        while found and size < limit:
            after, item = found.pop()
            if has_all(conditions, item.data):
                lines.append(to_json(item) + b"\n")
                size += len(lines[-1])
            del item
            yield b""
        found.clear()
        if large is not None:
            large.is_dropped()
        piece = b"".join(lines)
        lines.clear()
        yield piece
        number = CHUNK if size < limit else FIRST


def lines(
    read: Read[Item], after: int, first: int, most: int, limit: int, announce: Announce = none_is_large
) -> Generator[bytes | LargeRow, None, None]:
    """All items after the cursor as JSON lines. One chunk at a time is in memory."""

    def encoded(after: int, number: int) -> list[tuple[int, bytes | LargeRow]]:
        return [(cursor, to_json(item) + b"\n") for cursor, item in read(after, number)]

    def size_of(line: bytes | LargeRow) -> int:
        return len(line) if isinstance(line, bytes) else 0

    large: LargeRow | None = None
    for chunk in limited_reads(encoded, size_of, after=after, first=first, most=most, limit=limit, announce=announce):
        if isinstance(chunk[0], LargeRow):
            large = chunk[0]
            yield large
            continue
        if large is not None:
            large.is_dropped()
            large = None
        piece = b"".join(line for line in chunk if isinstance(line, bytes))
        chunk.clear()
        yield piece


def page_of(
    read: Read[Item],
    after: int,
    wanted: int,
    first: int = FIRST,
    most: int = CHUNK,
    clock: Clock = time.monotonic,
) -> tuple[list[Item], str | None]:
    """Up to `wanted` items, fewer if they are large or reading them takes long, and the cursor of the next page.

    Reads `first` items at once, then more, up to `most`, while they are small.
    """
    items: list[Item] = []
    size, step, give_up = 0, first, clock() + LOOKING
    while True:
        asked, before = min(step, wanted - len(items)), size
        found = read(after, asked + 1)
        if not found:
            return items, None
        for place, (id, item) in enumerate(found):
            more = len(to_json(item))
            if len(items) == wanted or (items and size + more > PAGE_BYTES):
                return items, str(after)
            if place == asked:
                break
            items.append(item)
            size += more
            after = id
        if size > PAGE_BYTES or clock() >= give_up:
            return items, str(after)
        if (size - before) * 8 < PAGE_BYTES:
            step = min(most, step * 2)

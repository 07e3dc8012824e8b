"""Reads rows of any size from the database in limited memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

Row = TypeVar("Row")
CHUNK_BYTES: Final = 512 << 10


def limited_reads(
    read: Callable[[int, int], list[tuple[int, Row]]],
    size_of: Callable[[Row], int],
    *,
    after: int,
    first: int,
    most: int,
    limit: int = CHUNK_BYTES,
    announce: Callable[[int], Row | None] = lambda _: None,
) -> Iterator[list[Row]]:
    """All rows after a cursor, in chunks of up to `limit` bytes; a larger row is a chunk of its own.

    `read` gets a cursor and a number, and returns rows, each with its cursor. The number of rows follows their size.
    `announce` gets the cursor before each read. What it returns is a chunk of its own, before the others.
    Rows beyond the limit are dropped and read again later, so a reader that waits holds one chunk and nothing else.
    """
    wanted = first
    while True:
        if (note := announce(after)) is not None:
            yield [note]
        chunk: list[Row] = []
        size, complete = 0, True
        for cursor, row in read(after, wanted):
            more = size_of(row)
            if chunk and size + more > limit:
                complete = False
                break
            chunk.append(row)
            size += more
            after = cursor
        if not chunk:
            return
        if not complete:
            wanted = len(chunk)
        elif size * 2 < limit:
            wanted = min(most, wanted * 2)
        del row
        yield chunk

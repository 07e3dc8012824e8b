"""Writes rows of named values as JSON lines, CSV or Parquet, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from silkline.export.large_rows import LargeRow
from silkline.export.parquet import load
from silkline.export.table import line_of
from silkline.portions import portions_of

GROUP_ROWS: Final = 20_000
GROUP_SIZE: Final = 8 << 20
"""Characters of the rows of one group of a Parquet file."""
ROWS: Final = 1_000
FEW: Final = 4
SIZE: Final = 256 << 10
"""Bytes that are written at once, or one row if it is longer."""
_encode = msgspec.json.Encoder().encode


class Columns(NamedTuple):
    """The names of the columns, and which of them are numbers or lists of texts; the others are texts."""

    names: tuple[str, ...]
    numbers: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()


def write_rows(rows: Iterable[Any], columns: Columns, form: str, stream: BinaryIO) -> int:
    """Write the rows as jsonl, csv or parquet. Returns their number."""
    return sum(row_pieces(rows, columns, form, stream))


def row_pieces(rows: Iterable[Any], columns: Columns, form: str, stream: BinaryIO) -> Iterator[int]:
    """The same, some rows at a time; yields how many were written.

    A row that is None means that there was nothing to write for a while. It yields too, so that no step takes long.
    """
    if form == "parquet":
        yield from _parquet(rows, columns, stream)
        return
    if form == "csv":
        stream.write(line_of(columns.names))

    def line(row: Any) -> bytes:
        if row is None:
            return b""
        return line_of(map(_cell, row)) if form == "csv" else _encode(row._asdict()) + b"\n"

    for some in portions_of(map(line, rows), ROWS, _length, SIZE):
        stream.write(b"".join(some))
        yield sum(map(bool, some))


def _parquet(rows: Iterable[Any], columns: Columns, stream: BinaryIO) -> Iterator[int]:
    pyarrow = load()

    def kind(name: str) -> Any:
        if name in columns.numbers:
            return pyarrow.int64()
        return pyarrow.list_(pyarrow.string()) if name in columns.lists else pyarrow.string()

    schema = pyarrow.schema([(name, kind(name)) for name in columns.names])
    with pyarrow.parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for some in portions_of(rows, GROUP_ROWS, _size, GROUP_SIZE):
            found = [row._asdict() for row in some if row is not None]
            if found:
                writer.write_table(pyarrow.Table.from_pylist(found, schema=schema))
            yield len(found)


def stopping(rows: Iterable[Any], large: list[LargeRow]) -> Iterator[Any]:
    """The rows; announcements go to `large`. After one, `row_pieces` yields before it asks for a further row."""
    for row in rows:
        if isinstance(row, LargeRow):
            large.append(row)
            yield from [None] * FEW
        else:
            yield row


def _length(line: bytes) -> int:
    """For an empty line so much that a few of them end a batch."""
    return len(line) or SIZE // FEW


def _size(row: Iterable[Any] | None) -> int:
    """The characters of the texts of a row. For none so much that a few of them end a group."""
    return GROUP_SIZE // FEW if row is None else sum([len(str(value)) for value in row])


def _cell(value: Any) -> Any:
    return " > ".join(value) if isinstance(value, list) else value

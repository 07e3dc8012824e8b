"""Writes rows of named values as JSON lines, CSV or Parquet, some at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar

import msgspec

from silkline.export.parquet import load
from silkline.export.table import harmless

Item = TypeVar("Item")
GROUP_ROWS: Final = 20_000
GROUP_SIZE: Final = 8 << 20
"""Characters of the rows of one group of a Parquet file."""
ROWS: Final = 1_000
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
    """The same, some rows at a time; yields how many were written."""
    if form == "parquet":
        yield from _parquet(rows, columns, stream)
        return
    if form == "csv":
        stream.write(_line(columns.names))
    lines = (_line(map(_cell, row)) if form == "csv" else _encode(row._asdict()) + b"\n" for row in rows)
    for some in batched(lines, ROWS, len, SIZE):
        stream.write(b"".join(some))
        yield len(some)


def batched(items: Iterable[Item], most: int, size_of: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
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


def _parquet(rows: Iterable[Any], columns: Columns, stream: BinaryIO) -> Iterator[int]:
    pyarrow = load()

    def kind(name: str) -> Any:
        if name in columns.numbers:
            return pyarrow.int64()
        return pyarrow.list_(pyarrow.string()) if name in columns.lists else pyarrow.string()

    schema = pyarrow.schema([(name, kind(name)) for name in columns.names])
    with pyarrow.parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for some in batched(rows, GROUP_ROWS, _size, GROUP_SIZE):
            writer.write_table(pyarrow.Table.from_pylist([row._asdict() for row in some], schema=schema))
            yield len(some)


def _size(row: Iterable[Any]) -> int:
    """The characters of the texts of a row."""
    return sum([len(str(value)) for value in row])


def _cell(value: Any) -> Any:
    return " > ".join(value) if isinstance(value, list) else value


def _line(cells: Iterable[Any]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow([harmless(cell) for cell in cells])
    return text.getvalue().encode("utf-8", "replace")

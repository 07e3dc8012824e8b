"""Rows of any size are written in pieces of limited size."""

import io
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from silkline.export.row_files import GROUP_ROWS, ROWS, Columns, row_pieces
from silkline.portions import portions_of


class Row(NamedTuple):
    name: str
    words: list[str]


COLUMNS = Columns(Row._fields, lists=frozenset({"words"}))


class Pieces(io.BytesIO):
    """A file that knows the longest piece that was written."""

    longest = 0

    def write(self, data):
        self.longest = max(self.longest, len(data))
        return super().write(data)


def test_batches_end_at_a_number_or_at_a_size():
    assert list(portions_of([1, 1, 1, 1, 9, 1, 1], 3, int, 5)) == [[1, 1, 1], [1, 9], [1, 1]]
    assert list(portions_of([], 3, int, 5)) == []


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_long_rows_are_written_a_few_at_a_time(form):
    file = Pieces()
    rows = (Row("x" * 100_000, ["a", "b"]) for _ in range(30))
    numbers = list(row_pieces(rows, COLUMNS, form, file))
    assert sum(numbers) == 30
    assert file.longest < 500_000
    assert file.getvalue().count(b"x" * 100_000) == 30


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_short_rows_are_written_together(form):
    file = io.BytesIO()
    assert list(row_pieces((Row("x", []) for _ in range(ROWS + 1)), COLUMNS, form, file)) == [ROWS, 1]


def test_a_group_of_parquet_has_a_limited_size():
    parquet = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    rows = (Row(f"{number}" * 500_000, ["y" * 500_000]) for number in range(10, 30))
    assert max(row_pieces(rows, COLUMNS, "parquet", file)) < 10
    read = parquet.read_table(io.BytesIO(file.getvalue())).to_pylist()
    assert [row["name"][:2] for row in read] == [str(number) for number in range(10, 30)]
    short = (Row("x", []) for _ in range(GROUP_ROWS + 1))
    assert list(row_pieces(short, COLUMNS, "parquet", io.BytesIO())) == [GROUP_ROWS, 1]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_pages_without_rows_yield_too(form: str) -> None:
    """Otherwise one step of a download would read a whole job in which nothing is to be written."""
    asked = 0

    def rows() -> Iterator[Row | None]:
        nonlocal asked
        for number in range(100):
            asked = number
            yield Row("x", []) if number == 50 else None

    pieces = row_pieces(rows(), COLUMNS, form, io.BytesIO())
    assert next(pieces) == 0
    assert asked < 10
    assert sum(pieces) == 1

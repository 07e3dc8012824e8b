"""Rows of any size are read in limited memory: all of them, once, in order."""

from hypothesis import given
from hypothesis import strategies as st

from silkline.export.limited_reads import limited_reads

LIMIT = 100


def chunks_of(sizes: list[int], *, first: int = 4, most: int = 32) -> tuple[list[list[int]], list[int]]:
    """The chunks, as indexes of rows, and how many rows each read wanted."""
    asked: list[int] = []

    def read(after: int, wanted: int) -> list[tuple[int, int]]:
        asked.append(wanted)
        return [(number + 1, number) for number in range(after, min(len(sizes), after + wanted))]

    found = limited_reads(read, sizes.__getitem__, after=0, first=first, most=most, limit=LIMIT)
    return list(found), asked


@given(st.lists(st.integers(0, 300), max_size=200))
def test_every_row_comes_once_and_a_chunk_is_small_or_one_row(sizes: list[int]) -> None:
    chunks, asked = chunks_of(sizes)
    assert [row for chunk in chunks for row in chunk] == list(range(len(sizes)))
    assert all(len(chunk) == 1 or sum(sizes[row] for row in chunk) <= LIMIT for chunk in chunks)
    assert max(asked) <= 32


def test_the_number_of_rows_follows_their_size() -> None:
    chunks, asked = chunks_of([1] * 200 + [40] * 50 + [1] * 300)
    assert max(asked[:8]) == 32, "small rows are read many at a time"
    large = [chunk for chunk in chunks if 210 <= chunk[0] < 240]
    assert {len(chunk) for chunk in large} == {2}
    assert asked[-1] == 32, "and again after large ones"

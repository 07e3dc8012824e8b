"""Every bomb that we know, and a fixed number of mutated inputs: no reader takes more than the input is worth.

The limits count CPU time and memory of a child process, and are generous; `make fuzz` tries more for longer.
"""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.html_bombs import BOMBS
from tests.fuzz.limited_child import LimitedChild
from tests.fuzz.mutations import corpus_for, mutated
from tests.fuzz.other_bombs import OTHER_BOMBS
from tests.fuzz.readers import HTML_READERS, READERS

SIZES = {"robots": 400_000, "sitemap": 400_000, "pdf": 20_000, "text": 400_000}
SEED = 20_261_116
MUTATED = 60


@pytest.fixture(scope="module")
def child() -> Iterator[LimitedChild]:
    with LimitedChild(READERS) as child:
        yield child


def _faults(child: LimitedChild, reader: str, name: str, body: bytes) -> list[str]:
    return [f"{name}: {fault}" for fault in child.measure(reader, body).faults(len(body))]


@pytest.mark.parametrize("reader", HTML_READERS)
def test_no_page_costs_more_than_it_is_worth(reader: str, child: LimitedChild) -> None:
    assert [fault for name, bomb in BOMBS.items() for fault in _faults(child, reader, name, bomb(60_000))] == []


@pytest.mark.parametrize("reader", OTHER_BOMBS)
def test_no_input_costs_more_than_it_is_worth(reader: str, child: LimitedChild) -> None:
    size = SIZES.get(reader, 100_000)
    bombs = OTHER_BOMBS[reader].items()
    assert [fault for name, bomb in bombs for fault in _faults(child, reader, name, bomb(size))] == []


@pytest.mark.parametrize("reader", READERS)
def test_no_mutation_costs_more_than_it_is_worth(reader: str, child: LimitedChild) -> None:
    random = Random(f"{SEED} {reader}")
    faults = [_faults(child, reader, str(number), mutated(reader, random)) for number in range(MUTATED)]
    assert [fault for several in faults for fault in several] == []


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=30, derandomize=True)
@given(st.data())
def test_any_bytes_are_read_or_refused(reader: str, data: st.DataObject) -> None:
    """In this process, so that Hypothesis can shrink what it finds."""
    honest = data.draw(st.sampled_from(corpus_for(reader)))
    at = data.draw(st.integers(0, min(len(honest), 2_000)))
    READERS[reader](honest[:at] + data.draw(st.binary(max_size=200)) + honest[at + data.draw(st.integers(0, 50)) :])


def test_a_reader_that_never_ends_or_takes_all_memory_is_noticed() -> None:
    def endless(_: bytes) -> int:
        while True:
            pass

    def greedy(_: bytes) -> int:
        return len([bytes(1 << 20) for _ in range(10_000)])

    def quick(body: bytes) -> int:
        return len(body)

    with LimitedChild({"endless": endless, "greedy": greedy, "quick": quick}) as child:
        assert child.measure("endless", b"x").faults(1)[0] == "the reader died: SIGXCPU"
        assert child.measure("greedy", b"x").faults(1)[0].startswith("MemoryError")
        assert child.measure("quick", b"x").faults(1) == []

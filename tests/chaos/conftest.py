"""Supervisors for the tests of this folder, and rows for the table that stands at the end of a run."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.supervisors import Yard
from tests.support.supervisors import yard as open_yard


@pytest.fixture
def yard(database_url: str, tmp_path: Path) -> Iterator[Yard]:
    """A yard on each of the two databases."""
    with open_yard(database_url, tmp_path) as place:
        yield place


class Stopwatch:
    """Seconds between faults and what was promised to follow them. Shown, never asserted."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, *_: Any) -> None:
        self.seconds.append(time.monotonic() - self._begun)

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        return f"median {ordered[len(ordered) // 2]:.2f} s, worst {ordered[-1]:.2f} s"


@pytest.fixture
def stopwatch() -> Stopwatch:
    return Stopwatch()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """What a test has to say about what it saw: a row of the table, which travels with the test's report."""
    said: list[str] = []
    yield said
    request.node.user_properties.append(("figure", "; ".join(said)))

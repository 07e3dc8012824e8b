"""Supervisors for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.supervisors import Yard
from tests.support.supervisors import yard as open_yard


@pytest.fixture
def yard(database_url: str, tmp_path: Path) -> Iterator[Yard]:
    """A yard on each of the two databases."""
    with open_yard(database_url, tmp_path) as place:
        yield place

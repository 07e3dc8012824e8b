"""Job ids: UUID version 7 that rise, whatever the clock does."""

import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from silkline.model import ids
from silkline.model.ids import new_id

NOW = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no id had been made yet; those of later tests do not come after ours, which may be of another year."""
    monkeypatch.setattr(ids, "_last", 0)


def test_an_id_is_a_uuid_of_version_7() -> None:
    id = uuid.UUID(new_id(NOW))
    assert (id.version, id.variant) == (7, uuid.RFC_4122)
    assert str(id) == str(id).lower()


def test_an_id_tells_the_time_of_its_making() -> None:
    assert uuid.UUID(new_id(NOW)).int >> 80 == int(NOW.timestamp() * 1000)


def test_ids_rise_within_a_moment_and_when_the_clock_goes_back() -> None:
    made = [new_id(NOW) for _ in range(5_000)] + [new_id(NOW - timedelta(hours=1)) for _ in range(5_000)]
    assert made == sorted(made)
    assert len(set(made)) == 10_000


def test_ids_of_many_threads_are_all_different() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id(NOW) for _ in range(1_000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8_000

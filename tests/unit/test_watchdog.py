"""Silence is measured by our own clock, between looks that succeeded."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from silkline.model.job import Job, Status, Wish
from silkline.service.watchdog import Silence

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = Job(
    **dict.fromkeys(Job.__dataclass_fields__)
    | {"id": "one", "status": Status.RUNNING, "desired": Wish.RUN, "run_lease": 1, "heartbeat_seq": 5}
)


@pytest.fixture
def silence() -> Silence:
    return Silence(stale_after=120, interval=60)


def test_a_job_that_moves_is_never_silent(silence: Silence) -> None:
    for look in range(10):
        assert silence.look([replace(JOB, heartbeat_seq=look)], look * 60.0) == []


def test_a_job_that_does_not_move_is_silent_after_the_limit(silence: Silence) -> None:
    assert silence.look([JOB], 0.0) == []
    assert silence.next_at() == 120.0
    assert silence.look([JOB], 60.0) == []
    assert silence.look([JOB], 120.0) == [JOB]


def test_another_lease_begins_anew(silence: Silence) -> None:
    for moment in (0.0, 60.0):
        silence.look([JOB], moment)
    assert silence.look([replace(JOB, run_lease=2)], 120.0) == []


@pytest.mark.parametrize("how", ["a failed look", "a gap between looks"])
def test_what_was_seen_before_we_were_blind_does_not_count(silence: Silence, how: str) -> None:
    silence.look([JOB], 0.0)
    silence.look([JOB], 60.0)
    if how == "a failed look":
        silence.blind()
        moment = 120.0
    else:
        moment = 60.0 + 500.0
    assert silence.look([JOB], moment) == []
    assert silence.look([JOB], moment + 60) == []
    assert silence.look([JOB], moment + 120) == [JOB]

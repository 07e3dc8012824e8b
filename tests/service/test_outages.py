"""What a supervisor does while its database is away, and when it is back."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.model.job import Status
from tests.support.postgres import PostgresServer
from tests.support.supervisors import ENDLESS, PATIENCE, Yard, alive, eventually, yard

NEVER_STALE = {"fence_after": 2000.0, "stale_after": 3000.0}


@pytest.fixture
def place(own_postgres: PostgresServer, tmp_path: Path) -> Iterator[Yard]:
    with yard(own_postgres.create_database(), tmp_path) as opened:
        yield opened


def test_a_fenced_job_starts_once_more_not_again_and_again(place: Yard, own_postgres: PostgresServer) -> None:
    (id,) = place.add("work", **ENDLESS)
    supervisor = place.start(heartbeat_interval=3.0, fence_after=10.0, stale_after=1000.0)
    place.wait_for_results(id)
    runner, lease, attempt = place.runner_of(id), place.job(id).run_lease, place.job(id).attempt
    own_postgres.stop("fast")
    eventually("it fences itself", lambda: not alive(runner))
    own_postgres.start()
    place.runner_of(id, after=lease)
    heartbeat = place.job(id).heartbeat_seq
    eventually("its heart beats again", lambda: place.job(id).heartbeat_seq > heartbeat + 1)
    job = place.job(id)
    assert (job.status, job.attempt, job.crash_count, job.retry_count) == (Status.RUNNING, attempt + 1, 0, 0)
    assert supervisor.log.count("the database did not answer") <= 2, "one line says it"
    assert "heartbeats are stored again" in supervisor.log, supervisor.log


def test_ended_while_the_database_was_away_its_jobs_are_taken_back_at_once(
    place: Yard, own_postgres: PostgresServer
) -> None:
    (id,) = place.add("sleep", seconds=600)
    supervisor = place.start(**NEVER_STALE)
    runner, lease = place.runner_of(id), place.job(id).run_lease
    own_postgres.stop("fast")
    supervisor.signal(signal.SIGTERM)
    eventually("it lets go", lambda: not alive(runner))
    supervisor.signal(signal.SIGTERM)
    assert supervisor.process.wait(PATIENCE) == 0
    own_postgres.start()
    place.start(**NEVER_STALE)
    place.runner_of(id, after=lease)


def test_an_outage_is_not_counted_against_a_job_that_is_told_to_end(place: Yard, own_postgres: PostgresServer) -> None:
    (id,) = place.add("work", max_retries=0, **ENDLESS)
    supervisor = place.start(grace_period=80.0, **NEVER_STALE)
    place.wait_for_results(id)
    runner = place.runner_of(id)
    own_postgres.stop("fast")
    supervisor.signal(signal.SIGTERM)
    eventually("it lets go", lambda: not alive(runner))
    own_postgres.start()
    assert supervisor.process.wait(PATIENCE) == 0
    job = place.job(id)
    assert (job.status, job.retry_count, job.crash_count) == (Status.QUEUED, 0, 0)
    assert (job.exit_reason, "PostgreSQL" in (job.error_message or "")) == ("database_away", True)


def test_a_database_file_taken_away_is_an_outage_too(tmp_path: Path) -> None:
    file = tmp_path / "silkline.db"
    with yard(f"sqlite:///{file}", tmp_path) as place:
        (id,) = place.add("work", **ENDLESS)
        supervisor = place.start(heartbeat_interval=2.0, fence_after=3.0, stale_after=1000.0, grace_period=1000.0)
        place.wait_for_results(id)
        runner, lease = place.runner_of(id), place.job(id).run_lease
        file.rename(tmp_path / "away.db")
        eventually("it fences itself", lambda: not alive(runner))
        eventually("it says why", lambda: "was removed or replaced while Silkline used it" in supervisor.log)
        (tmp_path / "away.db").rename(file)
        place.runner_of(id, after=lease)
        assert place.job(id).crash_count == 0
        file.rename(tmp_path / "away.db")
        supervisor.signal(signal.SIGTERM)
        assert supervisor.process.wait(PATIENCE) == 0, "it does not wait until it can store how the job ended"
        (tmp_path / "away.db").rename(file)

"""Log lines that are read while they are written, and the supervisors as the others see them."""

from datetime import timedelta

import pytest

from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.job import End
from silkline.store import job_removal, jobs, logs, workers
from silkline.store.logs import NewLine
from tests.store.given import finished, queued, running


def write(database: Database, job_id: str, *messages: str, attempt: int = 1) -> None:
    logs.append(database, [NewLine(job_id, attempt, "info", message, database.now()) for message in messages])


def texts(lines: list[logs.LogLine]) -> list[str]:
    return [line.message for line in lines]


def test_lines_are_followed_by_a_cursor(database: Database) -> None:
    job, other = queued(database), queued(database)
    write(database, job.id, "one", "two")
    write(database, other.id, "not mine")
    first = logs.page(database, job.id)
    assert texts(first) == ["one", "two"]
    assert logs.page(database, job.id, after=first[-1].id) == []
    write(database, job.id, "three", attempt=2)
    (line,) = logs.page(database, job.id, after=first[-1].id)
    assert (line.message, line.attempt, line.level) == ("three", 2, "info")
    assert line.at.tzinfo is not None
    assert texts(logs.page(database, job.id, wanted=2)) == ["one", "two"]


def test_the_tail_is_the_newest_lines_oldest_first(database: Database) -> None:
    job = queued(database)
    write(database, job.id, *map(str, range(10)))
    assert texts(logs.tail(database, job.id, 3)) == ["7", "8", "9"]
    assert len(logs.tail(database, job.id)) == 10


def test_no_lines_are_appended_without_a_word(database: Database) -> None:
    logs.append(database, [])


@pytest.mark.parametrize(("keep", "left"), [(3, 3), (10, 10), (50, 10), (0, 0)])
def test_trim_keeps_the_newest_lines(database: Database, keep: int, left: int) -> None:
    job, other = queued(database), queued(database)
    write(database, job.id, *map(str, range(10)))
    write(database, other.id, "stays")
    logs.trim(database, job.id, keep)
    assert texts(logs.page(database, job.id)) == [str(number) for number in range(10 - left, 10)]
    assert texts(logs.page(database, other.id)) == ["stays"]


def test_lines_of_jobs_that_ended_long_ago_expire_in_bounded_steps(database: Database) -> None:
    ended, live = running(database), queued(database)
    write(database, ended.id, *map(str, range(5)))
    write(database, live.id, "stays")
    finished(database, ended, End.COMPLETED)
    assert logs.expire(database, database.now() - timedelta(days=1)) == 0
    later = database.now() + timedelta(seconds=1)
    assert [logs.expire(database, later, wanted=3) for _ in range(3)] == [3, 2, 0]
    assert texts(logs.page(database, live.id)) == ["stays"]
    assert logs.page(database, ended.id) == []


def register(database: Database, id: str, host: str = "h") -> None:
    workers.register(database, id=id, host=host, pid=42, boot_id="boot", slots=3, version="0.1.0")


def test_a_registered_worker_is_seen_by_everyone(database: Database) -> None:
    register(database, "w1")
    (worker,) = workers.everyone(database)
    assert (worker.id, worker.host, worker.pid, worker.boot_id) == ("w1", "h", 42, "boot")
    assert (worker.slots, worker.jobs_held, worker.idle, worker.state, worker.version) == (
        3,
        0,
        False,
        "running",
        "0.1.0",
    )
    assert worker.started_at == worker.last_seen
    with pytest.raises(StoreError):
        register(database, "w1")


def test_workers_are_listed_by_host_and_age(database: Database) -> None:
    for id, host in (("w1", "b"), ("w2", "a"), ("w3", "b")):
        register(database, id, host)
    assert [worker.id for worker in workers.everyone(database)] == ["w2", "w1", "w3"]


def test_a_worker_says_whether_it_is_idle(database: Database) -> None:
    register(database, "w1")
    for idle in (True, False):
        workers.set_idle(database, "w1", idle)
        assert workers.everyone(database)[0].idle is idle


def test_a_worker_retires(database: Database) -> None:
    register(database, "w1")
    workers.retire(database, "w1")
    workers.retire(database, "w1")
    assert workers.everyone(database) == []


def test_the_dead_are_buried_unless_they_hold_a_job(database: Database) -> None:
    for id in ("dead", "dead-with-job", "alive"):
        register(database, id)
    job = running(database, "dead-with-job")
    line = database.now()
    jobs.heartbeat(database, "alive", slots=1, state="running")
    workers.delete_dead(database, line)
    assert {worker.id for worker in workers.everyone(database)} == {"dead-with-job", "alive"}
    finished(database, job)
    workers.delete_dead(database, line)
    assert [worker.id for worker in workers.everyone(database)] == ["alive"]


def test_a_line_that_comes_after_its_job_was_deleted_is_not_stored(database: Database) -> None:
    gone, stays = running(database), running(database)
    finished(database, gone)
    job_removal.delete(database, gone.id)
    lines = [
        NewLine(job.id, 1, "info", f"line {number}", database.now()) for number in range(50) for job in (gone, stays)
    ]
    logs.append(database, lines)
    with database.transaction() as transaction:
        logs.append_in(transaction, lines)
    assert logs.page(database, gone.id) == []
    assert [line.message for line in logs.page(database, stays.id)] == 2 * [f"line {number}" for number in range(50)]

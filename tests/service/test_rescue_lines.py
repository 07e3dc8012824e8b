"""A rescue stands in both logs of the job: in the database and in its log file."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from silkline.model.database import Database
from silkline.model.job import Backoff, Decision, Job, NewJob, Status, Wish
from silkline.runner.job_commands import take_back
from silkline.runner.rescue import rescue
from silkline.service.watchdog import Watchdog
from silkline.store import jobs, logs
from silkline.store.identity import Identity
from silkline.store.opening import open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        yield database


@pytest.fixture
def job(database: Database) -> Job:
    queued, _ = jobs.enqueue(database, NewJob("diagnostic", {"do": "nothing"}))
    return jobs.claim_one(database, "lost-worker", "lost-host", queued.id)


def stored_line(database: Database, job: Job) -> str:
    (line,) = logs.page(database, job.id)
    assert (line.level, line.attempt) == ("warning", 1)
    return line.message


def written_lines(data: Path, job: Job) -> list[str]:
    """The lines of the log file, without their times."""
    lines = (data / "logs" / f"{job.id}.log").read_text().splitlines()
    return [re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", "", line) for line in lines]


def test_a_job_that_a_person_takes_back(database: Database, job: Job, tmp_path: Path) -> None:
    assert take_back(database, tmp_path, job, Wish.PAUSE)
    line = stored_line(database, job)
    assert line.startswith("attempt 1 was lost: its owner lost-worker on lost-host is dead; the job is paused")
    assert written_lines(tmp_path, job) == [f"WARNING [1] {line}"]


def test_a_job_that_the_watchdog_rescues(database: Database, job: Job, tmp_path: Path) -> None:
    identity = Identity(tmp_path)
    watchdog = Watchdog(database, identity, tmp_path, stale_after=1.0, interval=1.0, backoff=Backoff())
    assert watchdog.take_back_jobs(["lost-worker"]) == 1
    identity.close(in_order=True)
    line = stored_line(database, job)
    assert line.startswith("attempt 1 was lost: its supervisor on lost-host died (worker lost-worker")
    assert "attempt 2 goes on from the last checkpoint" in line
    assert written_lines(tmp_path, job) == [f"WARNING [1] {line}"]


def test_the_line_is_added_to_what_the_attempt_wrote(database: Database, job: Job, tmp_path: Path) -> None:
    file = tmp_path / "logs" / f"{job.id}.log"
    file.parent.mkdir()
    file.write_text("INFO    [1] the attempt started\n")
    take_back(database, tmp_path, job, Wish.STOP)
    assert written_lines(tmp_path, job) == [
        "INFO    [1] the attempt started",
        f"WARNING [1] {stored_line(database, job)}",
    ]


def test_a_job_that_is_not_rescued_gets_no_line(database: Database, job: Job, tmp_path: Path) -> None:
    jobs.renew(database, job.id, job.run_lease, "lost-worker")  # its owner is alive
    back = Decision(Status.QUEUED, Wish.RUN, database.now(), 0, 0, "lost", None)
    assert not rescue(database, tmp_path, job, back, "it was silent")
    assert logs.page(database, job.id) == []
    assert not (tmp_path / "logs").exists()


def test_a_log_file_that_cannot_be_written_does_not_stop_the_rescue(
    database: Database, job: Job, tmp_path: Path
) -> None:
    (tmp_path / "logs").write_text("this is not a folder")
    assert take_back(database, tmp_path, job, Wish.CANCEL)
    assert jobs.get(database, job.id).status is Status.CANCELLED
    assert "the job is cancelled" in stored_line(database, job)


def test_a_rescue_is_written_in_the_format_of_the_file(database: Database, job: Job, tmp_path: Path) -> None:
    path = tmp_path / "logs" / f"{job.id}.log"
    path.parent.mkdir()
    path.write_text('{"at": "2030-01-01T00:00:00.000Z", "message": "began"}\n')
    assert take_back(database, tmp_path, job, Wish.PAUSE)
    _, line = map(json.loads, path.read_text().splitlines())
    assert (line["logger"], line["level"], line["attempt"]) == ("silkline.job", "warning", 1)
    assert (line["job"], line["worker"], line["message"]) == (job.id, "lost-worker", stored_line(database, job))

"""What the owner of a lease may write, and what nobody else may: every fact is a compare-and-set."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from silkline.errors import LeaseLost, NotFound
from silkline.model.database import Database
from silkline.model.job import Decision, End, Job, Status, Verb, Wish
from silkline.model.ledger import Checkpoint, Counts
from silkline.store import job_removal, jobs, urls, workers
from tests.store.given import NOWHERE, claimed, deciding, finished, queued, rescued, result, running, settled, url

Write = Callable[[Database, Job], object]


def register(database: Database, id: str) -> None:
    workers.register(database, id=id, host="h", pid=1, boot_id="b", slots=2, version="1")


def beat(database: Database, worker_id: str) -> list[jobs.Held] | None:
    return jobs.heartbeat(database, worker_id, slots=2, state="running")


def test_started_records_the_process_and_its_deadline(database: Database) -> None:
    job = running(database)
    deadline = database.now() + timedelta(hours=1)
    jobs.started(database, job, 4321, deadline)
    now = jobs.get(database, job.id)
    assert (now.pid, now.deadline_at) == (4321, deadline)


def test_a_heartbeat_renews_all_jobs_of_one_worker_and_no_other(database: Database) -> None:
    register(database, "w1")
    mine, mine_too, other = running(database), running(database), running(database, "w2")
    held = beat(database, "w1")
    assert held is not None
    assert {(each.id, each.run_lease, each.desired) for each in held} == {
        (mine.id, 1, Wish.RUN),
        (mine_too.id, 1, Wish.RUN),
    }
    renewed = jobs.get(database, mine.id)
    assert renewed.heartbeat_seq == mine.heartbeat_seq + 1
    assert renewed.last_heartbeat is not None
    assert mine.last_heartbeat is not None
    assert renewed.last_heartbeat > mine.last_heartbeat
    assert jobs.get(database, other.id) == other


def test_a_heartbeat_marks_the_worker_as_seen(database: Database) -> None:
    register(database, "w1")
    (before,) = workers.everyone(database)
    jobs.heartbeat(database, "w1", slots=7, state="draining")
    (after,) = workers.everyone(database)
    assert (after.slots, after.state) == (7, "draining")
    assert after.last_seen > before.last_seen


def test_a_heartbeat_of_a_worker_nobody_knows_says_so(database: Database) -> None:
    assert beat(database, "ghost") is None


def test_a_heartbeat_tells_wishes_and_leaves_out_what_was_lost(database: Database) -> None:
    register(database, "w1")
    wished, lost, ended = running(database), running(database), running(database)
    jobs.wish(database, wished.id, Verb.STOP)
    rescued(database, lost)
    finished(database, ended)
    assert beat(database, "w1") == [jobs.Held(wished.id, 1, Wish.STOP)]
    assert jobs.wishes(database, "w1") == [jobs.Held(wished.id, 1, Wish.STOP)]


def test_one_lease_is_renewed_and_the_wish_told(database: Database) -> None:
    job = running(database)
    assert jobs.renew(database, job.id, 1, "w1") is Wish.RUN
    jobs.wish(database, job.id, Verb.PAUSE)
    assert jobs.renew(database, job.id, 1, "w1") is Wish.PAUSE
    assert jobs.get(database, job.id).heartbeat_seq == job.heartbeat_seq + 2
    with pytest.raises(NotFound):
        jobs.renew(database, "not-an-id", 1, "w1")


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (End.COMPLETED, Status.COMPLETED),
        (End.PAUSED, Status.QUEUED),
        (End.STOPPED, Status.QUEUED),
        (End.CANCELLED, Status.QUEUED),
        (End.RELEASED, Status.QUEUED),
        (End.TEMPORARY, Status.QUEUED),
        (End.PERMANENT, Status.FAILED),
        (End.CRASHED, Status.QUEUED),
    ],
)
def test_finish_stores_the_decision(database: Database, end: End, status: Status) -> None:
    job = running(database)
    jobs.started(database, job, 99, database.now())
    decision = finished(database, job, end, reason="because", message="it was so")
    now = jobs.get(database, job.id)
    assert decision.status is now.status is status
    assert (now.worker_id, now.pid, now.deadline_at) == (None, None, None)
    assert (now.retry_count, now.crash_count) == (decision.retry_count, decision.crash_count)
    assert (now.run_at, now.desired) == (decision.run_at, decision.desired)
    assert (now.exit_reason, now.error_message) == ("because", "it was so")
    assert (now.finished_at is not None) == (status is not Status.QUEUED)
    assert now.run_lease == job.run_lease


def test_a_temporary_failure_backs_off(database: Database) -> None:
    job = running(database)
    finished(database, job, End.TEMPORARY)
    now = jobs.get(database, job.id)
    assert now.run_at > database.now()
    assert jobs.claim(database, "w2", "h", ["page"], 1) == []
    assert jobs.next_due(database) == now.run_at


def test_retries_end_when_they_are_used_up(database: Database) -> None:
    job = queued(database, max_retries=2)
    for _ in range(3):
        assert jobs.get(database, job.id).status is Status.QUEUED
        finished(database, jobs.claim_one(database, "w1", "h", job.id), End.TEMPORARY)
    assert (jobs.get(database, job.id).status, jobs.get(database, job.id).retry_count) == (Status.FAILED, 2)


def test_a_wish_that_came_after_the_job_was_read_is_obeyed_by_finish(database: Database) -> None:
    job = running(database)
    jobs.wish(database, job.id, Verb.CANCEL)
    assert job.desired is Wish.RUN
    decision = finished(database, job, End.TEMPORARY)
    now = jobs.get(database, job.id)
    assert decision.status is now.status is Status.CANCELLED
    assert now.finished_at is not None


def test_a_wish_between_the_decision_and_its_write_is_decided_again(database: Database) -> None:
    job = running(database)
    seen: list[Wish] = []

    def decide_slowly(current: Job) -> Decision:
        seen.append(current.desired)
        decision = deciding(database, End.RELEASED)(current)
        if len(seen) == 1:
            jobs.wish(database, job.id, Verb.PAUSE)
        return decision

    assert jobs.finish(database, job, decide_slowly).status is Status.PAUSED
    assert seen == [Wish.RUN, Wish.PAUSE]
    assert jobs.get(database, job.id).status is Status.PAUSED


def test_many_attempts_finish_at_once_except_those_that_moved(database: Database) -> None:
    mine = [running(database) for _ in range(4)]
    rescued(database, mine[1])
    jobs.wish(database, mine[2].id, Verb.STOP)
    decide = deciding(database, End.COMPLETED)
    assert jobs.finish_many(database, [(job, decide(job)) for job in mine]) == 2
    assert [jobs.get(database, job.id).status for job in mine] == ["completed", "queued", "running", "completed"]
    assert jobs.finish_many(database, []) == 0


def test_rescue_takes_a_job_from_the_dead(database: Database) -> None:
    job = running(database)
    assert rescued(database, job)
    now = jobs.get(database, job.id)
    assert (now.status, now.run_lease, now.crash_count, now.worker_id) == (Status.QUEUED, 2, 1, None)
    assert (now.exit_reason, now.error_message) == ("lost", "it fell silent")
    assert now.run_at > database.now()


def test_rescue_fails_a_job_that_crashed_too_often(database: Database) -> None:
    job = running(database, max_retries=0)
    assert rescued(database, job)
    now = jobs.get(database, job.id)
    assert (now.status, now.crash_count, now.run_lease) == (Status.FAILED, 1, 2)
    assert now.finished_at is not None


@pytest.mark.parametrize("sign_of_life", ["heartbeat", "renew", "wish", "finish", "rescue", "finish and claim"])
def test_rescue_leaves_alone_what_moved_since_it_was_looked_at(database: Database, sign_of_life: str) -> None:
    register(database, "w1")
    job = running(database)
    if sign_of_life == "heartbeat":
        beat(database, "w1")
    elif sign_of_life == "renew":
        jobs.renew(database, job.id, 1, "w1")
    elif sign_of_life == "wish":
        jobs.wish(database, job.id, Verb.PAUSE)
    elif sign_of_life == "rescue":
        rescued(database, job)
    else:
        finished(database, job, End.RELEASED)
        if "claim" in sign_of_life:
            claimed(database, "w1")
    before = jobs.get(database, job.id)
    assert not rescued(database, job)
    assert jobs.get(database, job.id) == before


def test_rescue_honours_the_wish_it_saw(database: Database) -> None:
    job = running(database)
    jobs.wish(database, job.id, Verb.CANCEL)
    (seen,) = jobs.running(database)
    assert rescued(database, seen)
    assert jobs.get(database, job.id).status is Status.CANCELLED


def write_started(database: Database, job: Job) -> None:
    jobs.started(database, job, 1, None)


def write_finish(database: Database, job: Job) -> None:
    finished(database, job)


def write_renew(database: Database, job: Job) -> None:
    assert job.worker_id
    jobs.renew(database, job.id, job.run_lease, job.worker_id)


def write_checkpoint(database: Database, job: Job) -> None:
    urls.record(database, job, Checkpoint(found=[url(1)], settled=[settled(1)], results=[result(1)]))


def read_as_owner(database: Database, job: Job) -> None:
    jobs.owned(database, job.id, job.run_lease, job.worker_id)


WRITES: list[Write] = [write_started, write_finish, write_renew, write_checkpoint, read_as_owner]


def lose_by_rescue(database: Database, job: Job) -> None:
    assert rescued(database, job)


def lose_by_end(database: Database, job: Job) -> None:
    finished(database, job)


def lose_to_another(database: Database, job: Job) -> None:
    finished(database, job, End.RELEASED)
    claimed(database, "w2")


def lose_to_myself(database: Database, job: Job) -> None:
    """The same supervisor runs it again: worker and status are the same, only the lease tells."""
    finished(database, job, End.RELEASED)
    claimed(database, "w1")


def lose_by_deletion(database: Database, job: Job) -> None:
    finished(database, job)
    job_removal.delete(database, job.id)


LOSSES: list[Write] = [lose_by_rescue, lose_by_end, lose_to_another, lose_to_myself, lose_by_deletion]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_who_lost_the_lease_writes_nothing(database: Database, write: Write, lose: Write) -> None:
    job = running(database)
    lose(database, job)
    before = jobs.page(database)
    with pytest.raises(LeaseLost):
        write(database, job)
    assert jobs.page(database) == before
    assert urls.page(database, job.id) == []
    assert urls.counts(database, job.id) == Counts()


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_the_right_lease_of_the_wrong_worker_writes_nothing(database: Database, write: Write) -> None:
    job = running(database, "w1")
    before = jobs.get(database, job.id)
    stranger = type(job)(**{**{name: getattr(job, name) for name in job.__slots__}, "worker_id": "w2"})
    with pytest.raises(LeaseLost):
        write(database, stranger)
    assert jobs.get(database, job.id) == before
    assert urls.page(database, job.id) == []


def test_a_job_that_never_was_is_owned_by_nobody(database: Database) -> None:
    with pytest.raises(LeaseLost, match="deleted"):
        jobs.owned(database, NOWHERE, 1, "w1")

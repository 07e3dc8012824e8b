"""PostgreSQL, where writers work side by side: real locks, two connections, no sleeping."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from silkline.errors import LeaseLost
from silkline.model.database import Database
from silkline.model.job import NewJob, Status, Verb
from silkline.model.ledger import Checkpoint, Counts
from silkline.store import jobs, results, urls, workers
from tests.store.given import queued, rescued, result, running, settled, url

CHECKPOINT = Checkpoint([url(1)], [settled(1)], [result(1)])
WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'silkline'
"""


class Thread(threading.Thread):
    """A thread that gives back what its function gave or raised."""

    def __init__(self, action: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._action = action
        self._value: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._action()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        self.join(60)
        assert not self.is_alive(), "it hangs"
        if self._error:
            raise self._error
        return self._value


def wait_until_somebody_waits(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(WAITING).fetchone() == (0,):
            pass


def test_a_rescue_waits_for_a_checkpoint_that_is_past_its_fence(
    postgres_database: Database, migrated_postgres_url: str
) -> None:
    job = running(postgres_database)
    with postgres_database.transaction() as transaction:
        urls.write(transaction, job.id, CHECKPOINT, postgres_database.now())
        jobs.fence(transaction, job)
        rescue = Thread(lambda: rescued(postgres_database, job))
        wait_until_somebody_waits(migrated_postgres_url)
        assert rescue.is_alive()
    assert rescue.result() is True
    assert results.count(postgres_database, job.id) == 1
    with pytest.raises(LeaseLost):
        urls.record(postgres_database, job, Checkpoint([url(2)]))


def test_a_checkpoint_waits_for_a_rescue_and_then_writes_nothing(
    postgres_database: Database, migrated_postgres_url: str
) -> None:
    job = running(postgres_database)
    with psycopg.connect(migrated_postgres_url) as other:
        other.execute("UPDATE crawl_jobs SET status = 'queued', worker_id = NULL, run_lease = run_lease + 1")
        checkpoint = Thread(lambda: urls.record(postgres_database, job, CHECKPOINT))
        wait_until_somebody_waits(migrated_postgres_url)
    with pytest.raises(LeaseLost):
        checkpoint.result()
    assert results.count(postgres_database, job.id) == 0
    assert urls.page(postgres_database, job.id) == []
    assert urls.counts(postgres_database, job.id) == Counts()


def test_a_checkpoint_that_waited_for_a_rescue_that_was_undone_goes_on(
    postgres_database: Database, migrated_postgres_url: str
) -> None:
    job = running(postgres_database)
    with psycopg.connect(migrated_postgres_url) as other:
        other.execute("UPDATE crawl_jobs SET status = 'queued', worker_id = NULL, run_lease = run_lease + 1")
        checkpoint = Thread(lambda: urls.record(postgres_database, job, CHECKPOINT))
        wait_until_somebody_waits(migrated_postgres_url)
        other.rollback()
    assert checkpoint.result().done == 1


def test_a_heartbeat_does_not_wait_for_the_writes_of_a_checkpoint(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.register(postgres_database, id="w1", host="h", pid=1, boot_id="b", slots=1, version="1")
    job = running(postgres_database)
    write = urls.write

    def beaten_meanwhile(*arguments: Any) -> Counts:
        counted = write(*arguments)
        held = Thread(lambda: jobs.heartbeat(postgres_database, "w1", slots=1, state="running")).result()
        assert [each.id for each in held] == [job.id]
        return counted

    monkeypatch.setattr(urls, "write", beaten_meanwhile)
    assert urls.record(postgres_database, job, CHECKPOINT).done == 1


def test_the_new_owner_and_the_old_cannot_both_store_a_page(
    postgres_database: Database, migrated_postgres_url: str
) -> None:
    old = running(postgres_database, "w1")
    with postgres_database.transaction() as transaction:
        jobs.fence(transaction, old, lock=False)
        urls.write(transaction, old.id, CHECKPOINT, postgres_database.now())
        assert rescued(postgres_database, old)
        new = jobs.claim_one(postgres_database, "w2", "h", old.id)
        second = Thread(lambda: urls.record(postgres_database, new, CHECKPOINT))
        wait_until_somebody_waits(migrated_postgres_url)
        with pytest.raises(LeaseLost):
            jobs.fence(transaction, old)
        transaction.script("ROLLBACK; BEGIN")
    assert second.result().done == 1
    assert results.count(postgres_database, old.id) == 1


def test_claimers_pass_each_other_by(postgres_database: Database, migrated_postgres_url: str) -> None:
    ids = jobs.enqueue_many(postgres_database, [NewJob("page", {}, tenant=f"t{number % 5}") for number in range(30)])
    with psycopg.connect(migrated_postgres_url) as other:
        other.execute("SELECT id FROM crawl_jobs WHERE tenant <> 't4' FOR UPDATE")
        taken = jobs.claim(postgres_database, "w1", "h", ["page"], 4)
        assert {job.tenant for job in taken} == {"t4"}
    rest = jobs.claim(postgres_database, "w2", "h", ["page"], 100)
    assert sorted(job.id for job in (*taken, *rest)) == sorted(ids)


def test_a_claim_locks_what_it_takes_and_nothing_else(postgres_database: Database, migrated_postgres_url: str) -> None:
    jobs.enqueue_many(postgres_database, [NewJob("page", {}, tenant=f"t{number}") for number in range(20)])
    with postgres_database.transaction() as transaction:
        taken = transaction.rows(
            "jobs.claim", now=postgres_database.now(), worker_id="w1", host="h", kinds='["page"]', wanted=2
        )
        assert len(taken) == 2
        others = jobs.claim(postgres_database, "w2", "h", ["page"], 100)
        assert len(others) == 18


def test_claim_one_waits_for_who_came_first_and_is_refused(
    postgres_database: Database, migrated_postgres_url: str
) -> None:
    job = queued(postgres_database)
    with psycopg.connect(migrated_postgres_url) as other:
        other.execute("UPDATE crawl_jobs SET status = 'running', worker_id = 'w9', run_lease = 1")
        claim = Thread(lambda: jobs.claim_one(postgres_database, "w1", "h", job.id))
        wait_until_somebody_waits(migrated_postgres_url)
    with pytest.raises(Exception, match="is running, not queued"):
        claim.result()
    assert jobs.get(postgres_database, job.id).worker_id == "w9"


def test_two_with_one_dedupe_key_at_the_same_time_make_one_job(
    postgres_database: Database, migrated_postgres_url: str
) -> None:
    with postgres_database.transaction() as transaction:
        row = jobs._new_row(NewJob("page", {}, dedupe_key="one"), postgres_database.now())
        transaction.many("jobs.enqueue", jobs._ENQUEUE, [row])
        second = Thread(lambda: jobs.enqueue(postgres_database, NewJob("page", {}, dedupe_key="one")))
        wait_until_somebody_waits(migrated_postgres_url)
    job, new = second.result()
    assert (job.id, job.status, new) == (row[0], Status.QUEUED, False)


def test_two_who_requeue_at_once_take_turns(postgres_database: Database, migrated_postgres_url: str) -> None:
    job, failed = running(postgres_database), [settled(id, "failed", reason="timeout") for id in range(1, 6)]
    urls.record(postgres_database, job, Checkpoint([url(each.id) for each in failed], failed))
    with postgres_database.transaction() as transaction:
        transaction.rows("urls.requeued", job_id=job.id, urls=0, now=postgres_database.now())
        second = Thread(lambda: urls.requeue(postgres_database, job.id, "timeout"))
        wait_until_somebody_waits(migrated_postgres_url)
        assert len(transaction.rows("urls.requeue", job_id=job.id, reason="timeout", wanted=100)) == 5
        transaction.rows("urls.requeued", job_id=job.id, urls=5, now=postgres_database.now())
    assert second.result() == 0
    assert urls.counts(postgres_database, job.id).queued == 5


def test_a_resume_waits_for_who_requeues(postgres_database: Database, migrated_postgres_url: str) -> None:
    job = queued(postgres_database)
    paused = jobs.wish(postgres_database, job.id, Verb.PAUSE)
    with postgres_database.transaction() as transaction:
        urls.check_status(transaction, paused)
        resume = Thread(lambda: jobs.wish(postgres_database, job.id, Verb.RESUME))
        wait_until_somebody_waits(migrated_postgres_url)
    assert resume.result().status is Status.QUEUED


def test_heartbeats_are_heap_only_updates(fresh_postgres: Database, postgres_url: str) -> None:
    """So few rows, in a table of their own, that every version of them finds room on the first page."""
    for _ in range(2):
        running(fresh_postgres)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        counters = "SELECT pg_stat_get_xact_tuples_updated(c.oid), pg_stat_get_xact_tuples_hot_updated(c.oid)"
        beat = (
            "UPDATE crawl_jobs SET last_heartbeat = now(), heartbeat_seq = heartbeat_seq + 1 WHERE status = 'running'"
        )
        with connection.transaction():
            for _ in range(3):
                connection.execute(beat)
            row = connection.execute(counters + " FROM pg_class c WHERE relname = 'crawl_jobs'").fetchone()
    assert row is not None
    assert row[0] == row[1] == 6

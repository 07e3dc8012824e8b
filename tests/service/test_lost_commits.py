"""A database that goes back to an older state while a job runs."""

from silkline.model.job import Status
from tests.support.supervisors import Yard, eventually

STEPS = 12
TABLES = ("crawl_states", "crawl_ledger", "crawl_results", "crawl_pages")


def keep(yard: Yard) -> None:
    with yard.database.transaction() as transaction:
        _lock(yard, transaction)
        for table in TABLES:
            transaction.script(f"CREATE TABLE older_{table} AS SELECT * FROM {table}")


def go_back(yard: Yard) -> None:
    with yard.database.transaction() as transaction:
        _lock(yard, transaction)
        for table in TABLES:
            if table in ("crawl_results", "crawl_pages"):
                transaction.script(f"DELETE FROM {table} WHERE url_id NOT IN (SELECT url_id FROM older_{table})")
                continue
            transaction.script(f"DELETE FROM {table}")
            transaction.script(f"INSERT INTO {table} SELECT * FROM older_{table}")


def _lock(yard: Yard, transaction: object) -> None:
    if yard.database.dialect == "postgres":
        for table in TABLES:
            transaction.script(f"LOCK TABLE {table}")  # type: ignore[attr-defined]


def test_what_the_database_lost_is_done_again(yard: Yard) -> None:
    (id,) = yard.add("work", steps=STEPS, seconds=0.2, max_retries=0)
    yard.start()
    yard.wait_for_results(id, 2)
    keep(yard)
    yard.wait_for_results(id, 5)
    go_back(yard)
    job = yard.wait_for(id, Status.COMPLETED)
    assert yard.results_of(id) == list(range(1, STEPS + 1))
    assert (job.attempt, job.retry_count, job.crash_count) == (2, 0, 0)


def test_a_claim_that_the_database_lost_leaves_one_attempt(yard: Yard) -> None:
    """The same worker claims the job again with the same lease, before a heartbeat could tell it of the loss."""
    (id,) = yard.add("work", steps=STEPS, seconds=0.2, max_retries=0)
    supervisor = yard.start(heartbeat_interval=600.0, fence_after=2000.0, stale_after=3000.0, slots=2)
    yard.wait_for_results(id, 2)
    first = yard.runner_of(id)
    with yard.database.transaction() as transaction:
        transaction.script("UPDATE crawl_jobs SET status = 'queued', run_lease = run_lease - 1, worker_id = NULL")
    yard.database.wake_supervisors()
    eventually("another process runs it", lambda: yard.job(id).pid not in (None, first))
    job = yard.wait_for(id, Status.COMPLETED)
    assert yard.results_of(id) == list(range(1, STEPS + 1))
    assert (job.retry_count, job.crash_count) == (0, 0), supervisor.log

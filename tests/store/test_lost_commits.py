"""A database that loses its last commits: a failover to a standby that was behind, or a crash of PostgreSQL with
`synchronous_commit = off`. The attempts that made these commits live on, and remember them."""

import pytest

from silkline.errors import CommitsLost, Unavailable, UrlsLeft
from silkline.model.database import Database
from silkline.model.job import Job, Status
from silkline.model.ledger import Checkpoint
from silkline.model.sharding import ShardProgress
from silkline.runner.context import JobProgress
from silkline.runner.inline import DirectProgress, Watcher
from silkline.runner.orders import Orders
from silkline.store import jobs, shard_links, urls
from tests.store.given import finished, running, settled, url
from tests.store.test_shards import crawl, sending


def lose_a_checkpoint(database: Database, job: Job) -> None:
    """The ledger is as before the checkpoint that settled URL 1."""
    with database.transaction() as transaction:
        transaction.script("UPDATE crawl_ledger SET state = 'queued' WHERE id = 1")
        transaction.script(
            "UPDATE crawl_states SET total_pending = total_pending + 1, done = done - 1, checkpoints = checkpoints - 1"
            f" WHERE job_id = '{job.id}'"
        )


class NoSupervisor(Orders):
    """A channel without an other end."""

    def sign(self) -> None:
        """Nobody listens."""


def progress_of(database: Database, job: Job) -> JobProgress:
    return JobProgress(database, job, NoSupervisor())  # type: ignore[arg-type]


def everything(database: Database, job: Job) -> tuple[object, ...]:
    return urls.page(database, job.id), urls.counts(database, job.id)


@pytest.mark.parametrize("found", [[], [url(3)]])
def test_an_attempt_that_remembers_lost_checkpoints_writes_nothing(database: Database, found: list[object]) -> None:
    job = running(database)
    progress = progress_of(database, job)
    progress.record(Checkpoint([url(1), url(2)]))
    progress.record(Checkpoint(settled=[settled(1)]))
    lose_a_checkpoint(database, job)
    before = everything(database, job)
    with pytest.raises(CommitsLost, match="1 checkpoints, not 2"):
        progress.record(Checkpoint(found, [settled(2)]))  # type: ignore[arg-type]
    assert everything(database, job) == before
    again = progress_of(database, job)
    assert again.record(Checkpoint(settled=[settled(1), settled(2)])).done == 2


def test_an_attempt_whose_ledger_is_lost_altogether_writes_nothing(database: Database) -> None:
    job = running(database)
    progress = DirectProgress(database, job, Watcher())
    progress.record(Checkpoint([url(1)]))
    with database.transaction() as transaction:
        transaction.script("DELETE FROM crawl_ledger")
        transaction.script("DELETE FROM crawl_states")
    with pytest.raises(CommitsLost):
        progress.record(Checkpoint(settled=[settled(1)]))
    assert urls.page(database, job.id) == []


def test_a_commit_whose_answer_was_lost_is_not_made_twice(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    job = running(database)
    progress, record = progress_of(database, job), urls.record
    lost = iter([True, False])

    def without_an_answer(*arguments: object) -> object:
        counts = record(*arguments)  # type: ignore[arg-type]
        if next(lost):
            raise Unavailable
        return counts

    monkeypatch.setattr(urls, "record", without_an_answer)
    progress.record(Checkpoint([url(1)]))
    assert progress.record(Checkpoint(settled=[settled(1)])).checkpoints == 2


def test_two_attempts_with_one_lease_do_not_write_beside_each_other(database: Database) -> None:
    job = running(database)
    first, second = progress_of(database, job), progress_of(database, job)
    first.record(Checkpoint([url(1)]))
    with pytest.raises(CommitsLost, match="another process"):
        second.record(Checkpoint([url(1)]))


def test_a_job_with_queued_urls_is_not_completed(database: Database) -> None:
    """Its last checkpoint was lost after the attempt had reported its end."""
    job = running(database)
    urls.record(database, job, Checkpoint([url(1)]))
    urls.record(database, job, Checkpoint(settled=[settled(1)]))
    lose_a_checkpoint(database, job)
    with pytest.raises(UrlsLeft):
        finished(database, job)
    assert jobs.get(database, job.id).status is Status.RUNNING
    urls.record(database, job, Checkpoint(settled=[settled(1)]))
    assert finished(database, job).status is Status.COMPLETED


def test_links_that_are_sent_again_get_another_number(postgres_database: Database) -> None:
    """A receiver that has read the lost row passes its number on to its cursor."""
    _, (first, second) = crawl(postgres_database)
    urls.record(postgres_database, first, sending(1))
    (lost,) = shard_links.arrived(postgres_database, second, {0: 0}, most=9)
    with postgres_database.transaction() as transaction:
        transaction.script("DELETE FROM shard_links")
        transaction.script("UPDATE crawl_shards SET sent = 0")
        transaction.script("UPDATE crawl_states SET checkpoints = 0")
    urls.record(postgres_database, first, sending(1), 0)
    urls.record(postgres_database, second, Checkpoint(shard=ShardProgress(taken=[(0, lost.number)])))
    (again,) = shard_links.arrived(postgres_database, second, shard_links.cursors(postgres_database, second), most=9)
    assert again.number > lost.number


def test_what_must_be_durable_is_so_without_synchronous_commits(postgres_database: Database) -> None:
    """The server of the tests has `synchronous_commit = off`, like one that was set up for fast crawls."""

    def setting(*, durable: bool) -> str:
        with postgres_database.transaction(durable=durable) as transaction:
            rows = transaction.connection.execute("SHOW synchronous_commit").fetchall()  # type: ignore[attr-defined]
            return str(rows[0]["synchronous_commit"])

    assert (setting(durable=True), setting(durable=False)) == ("on", "off")

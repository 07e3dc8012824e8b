"""URLs that a crawl leaves over are skipped for every reader, though no row of the ledger is rewritten."""

from collections import Counter

import pytest

from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.ledger import Checkpoint
from silkline.store import job_removal, migrate, pages, urls
from silkline.store.opening import open_database
from tests.store.given import finished, result, running, settled, url

REASON = "over_limit"


def left_over(database: Database) -> Job:
    """A crawl with a page that is done, one that failed, one that robots.txt forbids, and three that are left over."""
    job = running(database)
    found = [url(id) for id in (1, 2, 4, 5, 6)]
    found.insert(2, url(3, state="skipped", reason="robots"))
    ends = [settled(1), settled(2, "failed", reason="timeout")]
    urls.record(database, job, Checkpoint(found, ends, [result(1)]))
    urls.skip_queued(database, job, REASON)
    return job


def told(database: Database, job: Job) -> dict[int, tuple[str, str | None]]:
    return {row.id: (row.state, row.reason) for row in urls.page(database, job.id)}


def stored_states(database: Database) -> set[str]:
    """The states in the table itself."""
    with database.transaction() as transaction:
        rows = transaction.connection.execute("SELECT DISTINCT state FROM crawl_ledger")  # type: ignore[attr-defined]
        return {row["state"] if isinstance(row, dict) else row[0] for row in rows}


AFTER = {
    1: ("done", None),
    2: ("failed", "timeout"),
    3: ("skipped", "robots"),
    **dict.fromkeys((4, 5, 6), ("skipped", REASON)),
}


def test_every_reader_sees_them_as_skipped(database: Database) -> None:
    job = left_over(database)
    counts = urls.counts(database, job.id)
    assert (counts.queued, counts.done, counts.failed, counts.skipped, counts.discovered) == (0, 1, 1, 4, 6)
    assert urls.tally(database, job.id) == {"queued": 0, "done": 1, "unchanged": 0, "failed": 1, "skipped": 4}
    assert told(database, job) == AFTER
    assert urls.reasons(database, job.id) == [
        ("skipped", REASON, 3),
        ("failed", "timeout", 1),
        ("skipped", "robots", 1),
    ]
    assert urls.queued(database, job.id) == []
    assert urls.queued_depths(database, job.id) == {}
    assert [row.id for row in urls.page(database, job.id, state="skipped")] == [3, 4, 5, 6]
    assert urls.page(database, job.id, state="queued") == []
    assert [row.id for row in urls.failures(database, job.id, state="skipped", reason=REASON)] == [4, 5, 6]
    assert [row.id for row in urls.failures(database, job.id, state="skipped")] == [3, 4, 5, 6]
    assert pages.search(database, job.id, state="skipped").ids == [3, 4, 5, 6]
    assert pages.search(database, job.id, state="skipped", sort="-found").ids == [6, 5, 4, 3]
    assert pages.search(database, job.id, state="queued").ids == []
    one = urls.by_id(database, job.id, 5)
    assert one is not None
    assert (one.state, one.reason) == ("skipped", REASON)
    assert urls.by_key(database, job.id, one.url_key, one.url) == one
    assert urls.by_keys(database, job.id, [one.url_key]) == {one.url_key: one}
    assert urls.by_ids(database, job.id, [5]) == {5: one}
    assert {(end.state, end.reason): end.urls for end in urls.root_ends(database, job.id)} == Counter(AFTER.values())
    hosts = urls.hosts(database, job.id)
    assert sum(host["skipped"] for host in hosts) == 4
    assert sum(host["queued"] for host in hosts) == 0


def test_no_row_is_rewritten(database: Database) -> None:
    left_over(database)
    assert "queued" in stored_states(database)


def test_a_large_crawl_finds_them_by_its_index(database: Database) -> None:
    job = left_over(database)
    urls.index(database, job.id, chunk=2)
    one = urls.by_id(database, job.id, 4)
    assert one is not None
    assert urls.by_key(database, job.id, one.url_key, one.url) == one
    assert one.reason == REASON


def test_only_those_of_this_job(database: Database) -> None:
    other = running(database)
    urls.record(database, other, Checkpoint([url(1), url(2)]))
    left_over(database)
    assert told(database, other) == {1: ("queued", None), 2: ("queued", None)}
    assert urls.counts(database, other.id).queued == 2


def test_failed_urls_that_are_queued_again_are_not_taken_for_them(database: Database) -> None:
    job = left_over(database)
    assert urls.requeue(database, job.id, "timeout") == 1
    assert told(database, job) == {**AFTER, 2: ("queued", None)}
    assert [row.id for row in urls.queued(database, job.id)] == [2]
    counts = urls.counts(database, job.id)
    assert (counts.queued, counts.failed, counts.skipped) == (1, 0, 4)
    assert urls.tally(database, job.id)["queued"] == 1


def test_a_checkpoint_after_them_queues_new_urls(database: Database) -> None:
    """An attempt that died after it had left URLs over is followed by one that goes on."""
    job = left_over(database)
    urls.record(database, job, Checkpoint([url(7)]))
    assert told(database, job) == {**AFTER, 7: ("queued", None)}
    assert urls.counts(database, job.id).queued == 1
    assert "queued" in stored_states(database)
    urls.record(database, job, Checkpoint(settled=[settled(7)]))
    assert "queued" not in stored_states(database)


def test_the_first_reason_stays_if_nothing_more_is_left_over(database: Database) -> None:
    job = left_over(database)
    counts = urls.skip_queued(database, job, "over_duration")
    assert counts.skipped == 4
    assert told(database, job) == AFTER


def test_a_later_end_has_a_reason_of_its_own(database: Database) -> None:
    job = left_over(database)
    urls.record(database, job, Checkpoint([url(7)]))
    urls.skip_queued(database, job, "over_duration")
    assert told(database, job) == {**AFTER, 7: ("skipped", "over_duration")}
    assert urls.tally(database, job.id)["skipped"] == urls.counts(database, job.id).skipped == 5


def test_a_new_job_does_not_see_the_urls_of_a_deleted_one(database: Database) -> None:
    job = left_over(database)
    urls.index(database, job.id)
    finished(database, job)
    job_removal.delete(database, job.id)
    assert not stored_states(database)
    another = running(database)
    urls.record(database, another, Checkpoint([url(1)]))
    assert told(database, another) == {1: ("queued", None)}
    assert urls.by_key(database, another.id, url(4).url_key, url(4).url) is None


def test_a_row_of_sqlite_has_a_small_number_for_its_job(sqlite_database: Database) -> None:
    left_over(sqlite_database)
    with sqlite_database.transaction() as transaction:
        rows = list(transaction.connection.execute("SELECT DISTINCT typeof(job), job < 128 FROM crawl_ledger"))  # type: ignore[attr-defined]
    assert rows == [("integer", 1)]


@pytest.mark.parametrize("counted", [True, False])
def test_an_older_ledger_is_carried_over(database_url: str, counted: bool) -> None:
    """Also one whose counters are missing."""
    old = open_database(database_url, upgrade=False)
    migrate.upgrade(old, to=15)
    ids = ["01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"]
    columns = "job_id, id, url_key, url, host, depth, state, reason, found_on, found_via, attempts, http_status, chain"
    with old.transaction() as transaction:
        for number, id in enumerate(ids):
            for row, state in ((1, "'queued', NULL"), (2, "'failed', 'timeout'"), (3, f"'skipped', '{REASON}'")):
                key = 10 * number + row
                values = f"'{id}', {row}, {key}, 'https://c/{key}', 'c', 0, {state}, 1, 'link', 2, 404, 'x'"
                transaction.script(f"INSERT INTO crawl_urls ({columns}) VALUES ({values})")
                transaction.script(f"INSERT INTO crawl_url_keys VALUES ('{id}', {key}, {row})")
            if counted:
                transaction.script(
                    "INSERT INTO crawl_states (job_id, total_pending, discovered, failed, skipped, updated_at) "
                    f"VALUES ('{id}', 1, 3, 1, 1, '{old.now().isoformat()}')"
                )
    old.close()
    database = open_database(database_url)
    for number, id in enumerate(ids):
        rows = urls.page(database, id)
        assert [(row.id, row.url_key, row.state, row.reason) for row in rows] == [
            (1, 10 * number + 1, "queued", None),
            (2, 10 * number + 2, "failed", "timeout"),
            (3, 10 * number + 3, "skipped", REASON),
        ]
        assert {(row.job_id, row.found_on, row.attempts, row.http_status, row.chain) for row in rows} == {
            (id, 1, 2, 404, "x")
        }
        assert urls.by_key(database, id, 10 * number + 2, rows[1].url) == rows[1]
        if counted or database.dialect == "sqlite":
            counts = urls.counts(database, id)
            assert (counts.queued, counts.failed, counts.skipped, counts.discovered) == (1, 1, 1, 3)
    database.close()

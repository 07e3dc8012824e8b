"""What a process commits is counted in the same transaction: with it, or not at all."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from silkline.errors import LeaseLost
from silkline.metrics import process
from silkline.model.database import Database
from silkline.model.ledger import Checkpoint
from silkline.store import checkpoint_counts, jobs, urls
from silkline.store.job_counts import MOST_TENANTS, job_counts
from tests.store.given import queued, rescued, result, running, settled, url

NOTHING = dict.fromkeys(checkpoint_counts.COLUMNS, 0)


@pytest.fixture
def meter(tmp_path: Path) -> Iterator[str]:
    """The id of the meter of this process."""
    process.detach()
    process.attach(tmp_path, "runner")
    yield process.meter_id() or ""
    process.detach()


def test_the_counts_of_a_meter_are_those_of_its_checkpoints(database: Database, meter: str) -> None:
    first, second = running(database, payload={"n": 1}), running(database, payload={"n": 2})
    found = [url(1), url(2), url(3, state="skipped", reason="robots")]
    urls.record(database, first, Checkpoint(found, [settled(1)], [result(1)], bytes=700))
    urls.record(database, first, Checkpoint(settled=[settled(2, "failed", reason="timeout")]))
    urls.record(database, second, Checkpoint([url(1), url(2)], [settled(1, "unchanged")]))
    urls.skip_queued(database, second, "over_limit")
    counted = {"discovered": 5, "done": 1, "unchanged": 1, "failed": 1, "skipped": 2, "bytes": 700, "results": 1}
    assert checkpoint_counts.total(database, [meter]) == {**NOTHING, **counted, "checkpoints": 3}
    assert urls.requeue(database, first.id, "timeout") == 1
    assert checkpoint_counts.total(database, [meter])["requeued"] == 1


def test_a_checkpoint_that_is_refused_is_not_counted(database: Database, meter: str) -> None:
    job = running(database)
    urls.record(database, job, Checkpoint([url(1)]))
    rescued(database, job)
    with pytest.raises(LeaseLost):
        urls.record(database, job, Checkpoint([url(2)], [settled(1)], [result(1)], bytes=9))
    assert checkpoint_counts.total(database, [meter]) == {**NOTHING, "discovered": 1, "checkpoints": 1}


def test_each_machine_sees_its_own_meters(database: Database, meter: str, tmp_path: Path) -> None:
    job = running(database)
    urls.record(database, job, Checkpoint([url(1)]))
    process.detach()
    urls.record(database, job, Checkpoint([url(2)]))  # without a meter nothing is counted
    process.attach(tmp_path / "another", "runner")
    urls.record(database, job, Checkpoint([url(3), url(4)]))
    other = process.meter_id() or ""
    assert other != meter
    assert checkpoint_counts.total(database, [meter])["discovered"] == 1
    assert checkpoint_counts.total(database, [meter, other])["discovered"] == 3
    assert checkpoint_counts.total(database, []) == NOTHING


def test_counts_of_forgotten_machines_are_removed(database: Database, meter: str) -> None:
    urls.record(database, running(database), Checkpoint([url(1)]))
    checkpoint_counts.forget(database, database.now() - timedelta(days=1))
    assert checkpoint_counts.total(database, [meter])["discovered"] == 1
    checkpoint_counts.forget(database, database.now() + timedelta(days=1))
    assert checkpoint_counts.total(database, [meter]) == NOTHING


def test_jobs_are_counted_by_kind_and_tenant(database: Database) -> None:
    later = database.now() + timedelta(hours=1)
    queued(database, kind="site", tenant="big", run_at=database.now() - timedelta(seconds=500))
    queued(database, kind="site", tenant="big", run_at=database.now() - timedelta(seconds=100))
    queued(database, tenant="big", run_at=later)
    running(database)
    for number in range(MOST_TENANTS + 4):
        queued(database, tenant=f"tenant {number}")
    found = job_counts(database)
    assert found.by_kind == {("site", "queued"): 2, ("page", "queued"): MOST_TENANTS + 5, ("page", "running"): 1}
    assert found.waiting["site", "big"] == 2
    assert ("page", "big") not in found.waiting, "its time has not come"
    assert found.waiting["page", "other"] == 5
    assert sum(found.waiting.values()) == MOST_TENANTS + 6
    assert 500 <= found.longest_wait["site"] < 4000
    assert 0 <= found.heartbeat_age < 3600


def test_an_empty_queue_has_no_age(database: Database) -> None:
    found = job_counts(database)
    assert (found.by_kind, found.waiting, found.longest_wait, found.heartbeat_age) == ({}, {}, {}, 0.0)
    assert jobs.pending_total(database) == 0

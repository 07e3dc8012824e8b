"""The fleet, as the database knows it."""

from datetime import timedelta

from silkline.model.database import Database
from silkline.model.ledger import Checkpoint, NewUrl, Settled
from silkline.model.usage import (
    MOST_BYTES,
    MOST_PROCESSES,
    AttemptUsage,
    MachineUsage,
    ProcessShare,
    WorkerUsage,
    from_text,
    to_text,
)
from silkline.store import jobs, urls, workers
from silkline.store.fleet import fleet
from tests.store.given import queued, running

MACHINE = MachineUsage(cores=8, load=1.5, memory_total=16_000, memory_used=4_000)


def register(database: Database, id: str, host: str = "host-1") -> None:
    workers.register(database, id=id, host=host, pid=1, boot_id=f"boot of {host}", slots=2, version="1")


def usage_of(job: jobs.Job, processes: int = 2) -> AttemptUsage:
    shares = [ProcessShare(100 + number, "fetcher", 1_000, 7, 0.25) for number in range(processes)]
    return AttemptUsage(job.id, job.run_lease, 0.5, 2.0, "affinity", 2_000, 9_000, 14, processes, shares)


def test_the_fleet_is_its_machines_its_queue_and_its_jobs(database: Database) -> None:
    for id, host in (("w1", "host-1"), ("w2", "host-1"), ("w3", "host-2")):
        register(database, id, host)
    now = database.now()
    queued(database, "page", run_at=now - timedelta(hours=1))
    queued(database, "page", run_at=now + timedelta(hours=1))
    queued(database, "map", run_at=now + timedelta(hours=1))
    job = running(database, "w1", kind="site", request_url="https://me:secret@example.com/")
    other = running(database, "w3", kind="page")
    found = [NewUrl(id, id, f"https://example.com/{id}", "example.com", 0) for id in (1, 2, 3)]
    live = {"rate": 4.5, "rates": [[100, 3.5], ["odd"], [101, 1.0]]}
    urls.record(database, job, Checkpoint(found=found, settled=[Settled(1, "done")], live=live))
    jobs.heartbeat(database, "w1", slots=2, state="running", usage=WorkerUsage(MACHINE, [usage_of(job)]))
    jobs.heartbeat(database, "w3", slots=2, state="draining")

    seen = fleet(database, workers.everyone(database))

    one, two = seen.machines
    assert (one.host, one.workers, one.jobs, one.slots) == ("host-1", ["w1", "w2"], 1, 4)
    assert (one.cores, one.load, one.memory_total, one.memory_used) == (8, 1.5, 16_000, 4_000)
    assert (two.host, two.states, two.cores, two.jobs) == ("host-2", ["draining"], None, 1)
    assert [(each.kind, each.due, each.later) for each in seen.queue] == [("map", 0, 1), ("page", 1, 1)]
    assert seen.queue[0].oldest_seconds is None
    assert 3_600 <= (seen.queue[1].oldest_seconds or 0) < 4_000
    assert (seen.running, seen.pending_urls, seen.rate) == (2, 2, 4.5)
    site, page = seen.jobs
    assert (site.id, site.pages, site.pending_urls, site.status) == (job.id, 1, 2, "running")
    assert site.url == "https://me:***@example.com/"
    assert site.usage is not None
    assert (site.usage.cpus, site.usage.cpus_limit, site.usage.cpus_limited_by) == (0.5, 2.0, "affinity")
    assert [(each.pid, each.rate) for each in site.usage.processes] == [(100, 3.5), (101, 1.0)]
    assert (page.id, page.usage, page.rate) == (other.id, None, None)


def test_the_usage_of_an_older_attempt_is_not_shown(database: Database) -> None:
    register(database, "w1")
    job = running(database, "w1")
    old = AttemptUsage(job.id, job.run_lease - 1, 0.5, None, None, 1, None, 1, 1, [])
    jobs.heartbeat(database, "w1", slots=1, state="running", usage=WorkerUsage(MACHINE, [old]))
    (shown,) = fleet(database, workers.everyone(database)).jobs
    assert shown.usage is None


def test_an_empty_fleet(database: Database) -> None:
    seen = fleet(database, [])
    assert (seen.machines, seen.queue, seen.jobs, seen.running, seen.pending_urls) == ([], [], [], 0, 0)


def test_what_a_worker_stores_is_bounded(database: Database) -> None:
    job = running(database)
    large = WorkerUsage(MACHINE, [usage_of(job, MOST_PROCESSES)] * 30)
    short = from_text(to_text(large))
    assert short is not None
    assert len(to_text(large)) <= MOST_BYTES
    assert (len(short.attempts), short.attempts[0].processes) == (30, [])
    huge = from_text(to_text(WorkerUsage(MACHINE, [usage_of(job, 1)] * 3_000)))
    assert huge == WorkerUsage(MACHINE, [])
    assert from_text("{}") is None
    assert from_text(None) is None

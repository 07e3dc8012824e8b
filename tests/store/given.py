"""Short words for what most store tests begin with."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from silkline.model.database import Database
from silkline.model.ids import new_id
from silkline.model.job import AttemptEnd, Backoff, Decision, End, Job, NewJob, Status, Verb, decide
from silkline.model.ledger import NewResult, NewUrl, Settled
from silkline.store import jobs

BACKOFF = Backoff(base=3600.0, cap=7200.0)  # no machine is so slow that a retry becomes due within a test
NOWHERE = "00000000-0000-7000-8000-000000000000"


def queued(database: Database, kind: str = "page", **fields: Any) -> Job:
    job, new = jobs.enqueue(database, NewJob(kind, fields.pop("payload", {}), **fields))
    assert new
    return job


def claimed(database: Database, worker_id: str = "w1", *, kinds: tuple[str, ...] = ("page", "site")) -> Job:
    (job,) = jobs.claim(database, worker_id, "host-1", kinds, 1)
    return job


def running(database: Database, worker_id: str = "w1", **fields: Any) -> Job:
    return jobs.claim_one(database, worker_id, "host-1", queued(database, **fields).id)


def deciding(
    database: Database, end: End, *, reason: str = "", message: str = "", wait: float = 0.0
) -> Callable[[Job], Decision]:
    ended = AttemptEnd(end, reason, message, wait)
    return lambda job: decide(job, ended, backoff=BACKOFF, now=database.now(), jitter=0.0)


def finished(database: Database, job: Job, end: End = End.COMPLETED, **words: Any) -> Decision:
    return jobs.finish(database, job, deciding(database, end, **words))


def rescued(database: Database, job: Job) -> bool:
    return jobs.rescue(database, job, deciding(database, End.CRASHED, reason="lost", message="it fell silent")(job))


def in_status(database: Database, status: Status) -> Job:
    """A job that got there by the verbs alone."""
    if status is Status.QUEUED:
        return queued(database)
    job = running(database)
    if status is Status.RUNNING:
        return job
    wish = {Status.PAUSED: Verb.PAUSE, Status.STOPPED: Verb.STOP, Status.CANCELLED: Verb.CANCEL}.get(status)
    if wish:
        jobs.wish(database, job.id, wish)
    finished(database, job, {Status.COMPLETED: End.COMPLETED, Status.FAILED: End.PERMANENT}.get(status, End.RELEASED))
    job = jobs.get(database, job.id)
    assert job.status is status
    return job


def tomorrow(database: Database) -> Any:
    return database.now() + timedelta(days=1)


def url(id: int, **fields: Any) -> NewUrl:
    values: dict[str, Any] = {"url_key": id * 7, "url": f"https://example.com/{id}", "host": "example.com", "depth": 0}
    return NewUrl(id, **{**values, **fields})


def settled(id: int, state: str = "done", **fields: Any) -> Settled:
    return Settled(id, state, **fields)


def result(url_id: int, **fields: Any) -> NewResult:
    values: dict[str, Any] = {
        "original_url": f"https://example.com/{url_id}",
        "original_key": url_id * 7,
        "final_url": f"https://example.com/{url_id}",
        "final_key": url_id * 7,
        "data": '{"markdown":"# hello"}',
        "success": True,
        "metadata": '{"http_status":200}',
    }
    return NewResult(url_id=url_id, **{**values, **fields})


def job_of_an_older_schema(database: Database) -> str:
    """A queued `page` job in a database of a revision that calls the kind `worker`; its id."""
    id, now = new_id(database.now()), database.now().isoformat()
    with database.transaction() as transaction:
        transaction.script(
            "INSERT INTO crawl_jobs (id, worker, status, desired, request_url, payload, metadata, run_at, dedupe_key,"
            f" created_at, updated_at) VALUES ('{id}', 'page', 'queued', 'run', 'https://example.com',"
            f""" '{{"url": "https://example.com"}}', '{{"kept": true}}', '{now}', 'k', '{now}', '{now}')"""
        )
    return id

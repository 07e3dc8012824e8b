"""The verbs on jobs. Only `claim`, `claim_one` and `shards.claim` start a job. Every write of an attempt checks its
lease."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from silkline.errors import DiskFull, LeaseLost, NotFound, Refused, StoreError, Unavailable, UrlsLeft, UsageError
from silkline.model.database import Database, Row, Transaction
from silkline.model.ids import is_id, new_id
from silkline.model.job import (
    ENDED,
    Change,
    Decision,
    Job,
    NewJob,
    Refusal,
    Status,
    Verb,
    Wish,
    answer,
)
from silkline.model.sharding import is_parent
from silkline.model.usage import WorkerUsage, to_text
from silkline.store import logs
from silkline.store.logs import NewLine
from silkline.store.shard_checks import check_shards
from silkline.store.shard_wishes import spread
from silkline.store.short_payload import payload_columns
from silkline.store.text import clean, to_json

LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
_ENQUEUE = (
    *("id", "kind", "status", "desired", "request_url", "payload", "short_payload", "metadata", "priority", "tenant"),
    *("run_at", "dedupe_key", "parent_id", "max_retries", "created_at"),
)
_FINISH = (
    *("status", "desired", "run_at", "retry_count", "crash_count", "exit_reason", "error_message", "finished_at"),
    *("id", "run_lease", "seen"),
)


@dataclass(frozen=True, slots=True)
class Held:
    """A job that this worker holds, and what the user wants of it."""

    id: str
    run_lease: int
    desired: Wish


_STATUSES = {status.value: status for status in Status}  # a quarter of the cost of calling the enum
_WISHES = {wish.value: wish for wish in Wish}


def from_row(row: Row) -> Job:
    values = {name: value for name, value in row.items() if name != "short_payload"}
    values["status"] = _STATUSES[values["status"]]
    values["desired"] = _WISHES[values["desired"]]
    values["payload"] = json.loads(values["payload"])
    values["metadata"] = json.loads(values["metadata"]) if values["metadata"] != "{}" else {}
    return Job(**values)


def enqueue(database: Database, job: NewJob) -> tuple[Job, bool]:
    """Store one job. If a live job of the same tenant has the same dedupe key: returns its outline, and False."""
    now = database.now()
    check_shards(database, [job])
    with database.transaction(durable=True) as transaction:
        stored = enqueue_in(transaction, job, now)
    database.wake_supervisors()
    return stored


def enqueue_in(transaction: Transaction, job: NewJob, now: datetime) -> tuple[Job, bool]:
    """The same as part of a larger transaction. The caller must wake the supervisors after the commit."""
    row = _new_row(job, now)
    if transaction.many("jobs.enqueue", _ENQUEUE, [row]):
        return from_row(transaction.rows("jobs.get", id=row[0])[0]), True
    live = transaction.rows("jobs.live_with_key", tenant=clean(job.tenant), dedupe_key=clean(job.dedupe_key))
    found = outlines(transaction, [row["id"] for row in live])
    return (found[0], False) if found else enqueue_in(transaction, job, now)


def enqueue_many(database: Database, jobs: Sequence[NewJob]) -> list[str]:
    """Store many jobs in one transaction. Returns the ids of the new ones, in order."""
    now = database.now()
    check_shards(database, jobs)
    rows = [_new_row(job, now) for job in jobs]
    ids = [row[0] for row in rows]
    if any(job.dedupe_key is not None for job in jobs):
        with database.transaction(durable=True) as transaction:
            if transaction.many("jobs.enqueue", _ENQUEUE, rows) < len(rows):
                ids = [id for id in ids if transaction.rows("jobs.get", id=id)]
    else:
        database.many("jobs.enqueue", _ENQUEUE, rows, durable=True)
    database.wake_supervisors()
    return ids


def _new_row(job: NewJob, now: datetime) -> tuple[Any, ...]:
    status, desired = (Status.PAUSED, Wish.PAUSE) if job.paused else (Status.QUEUED, Wish.RUN)
    return (
        new_id(now),
        job.kind,
        status.value,
        desired.value,
        clean(job.request_url),
        *payload_columns(job.payload),
        to_json(job.metadata),
        job.priority,
        clean(job.tenant),
        job.run_at or now,
        clean(job.dedupe_key),
        job.parent_id,
        job.max_retries,
        now,
    )


def claim(database: Database, worker_id: str, host: str, kinds: Iterable[str], wanted: int) -> list[Job]:
    """Claim up to `wanted` jobs that are due. Returns their outlines."""
    if wanted < 1:
        return []
    found = database.rows(
        "jobs.claim", now=database.now(), worker_id=worker_id, host=host, kinds=json.dumps(sorted(kinds)), wanted=wanted
    )
    return sorted((from_row(row) for row in found), key=lambda job: (-job.priority, job.run_at, job.id))


def claim_one(database: Database, worker_id: str, host: str, id: str) -> Job:
    """Claim one job by its id, at once."""
    found = database.rows("jobs.claim_one", now=database.now(), worker_id=worker_id, host=host, id=checked_id(id))
    if found:
        return from_row(found[0])
    raise Refused(f"job {id} is {outline(database, id).status}, not queued")


def next_due(database: Database) -> datetime | None:
    """When the next scheduled or backing-off job may start."""
    moment: datetime | None = database.rows("jobs.next_due", now=database.now())[0]["run_at"]
    return moment


def started(database: Database, job: Job, pid: int, deadline_at: datetime | None) -> None:
    """Store the process of an attempt."""
    if not database.rows(
        "jobs.started",
        id=job.id,
        run_lease=job.run_lease,
        worker_id=job.worker_id,
        pid=pid,
        deadline_at=deadline_at,
        now=database.now(),
    ):
        raise LeaseLost(f"job {job.id} lost its lease before its process started")


def heartbeat(
    database: Database, worker_id: str, *, slots: int, state: str, usage: WorkerUsage | None = None
) -> list[Held] | None:
    """Renew all leases of this worker. Returns the jobs that it still holds; None: it is no longer registered."""
    now, text = database.now(), to_text(usage) if usage is not None else None
    with database.transaction() as transaction:
        held = transaction.rows("jobs.heartbeat", worker_id=worker_id, now=now)
        known = transaction.rows("workers.seen", id=worker_id, now=now, slots=slots, state=state, usage=text)
    return [Held(row["id"], row["run_lease"], Wish(row["desired"])) for row in held] if known else None


def renew(database: Database, id: str, run_lease: int, worker_id: str) -> Wish:
    """Renew one lease, for an external worker. Returns what the user wants of the job."""
    found = database.rows("jobs.renew", id=checked_id(id), run_lease=run_lease, worker_id=worker_id, now=database.now())
    if not found:
        raise LeaseLost(f"lease {run_lease} no longer holds job {id}")
    return Wish(found[0]["desired"])


def wishes(database: Database, worker_id: str) -> list[Held]:
    """What the users want of the jobs that this worker holds."""
    found = database.rows("jobs.wishes", worker_id=worker_id)
    return [Held(row["id"], row["run_lease"], Wish(row["desired"])) for row in found]


def finish(database: Database, job: Job, decide: Callable[[Job], Decision]) -> Decision:
    """End an attempt: store what `decide` returns for the current job, with its current wish. A job with queued URLs is
    not completed: raises `UrlsLeft`."""
    while True:
        decision = decide(job)
        if finish_many(database, [(job, decision)]):
            return decision
        job = owned_outline(database, job.id, job.run_lease, job.worker_id)  # its wish changed, or it is no longer ours
        if decision.status is Status.COMPLETED and database.rows("urls.left", job_id=job.id):
            raise UrlsLeft(f"URLs of job {job.id} are still queued")


def finish_many(database: Database, ended: Sequence[tuple[Job, Decision]]) -> int:
    """Store the ends of many attempts of one worker. Returns how many were stored: not if the wish or lease changed."""
    if not ended:
        return 0
    now = database.now()
    rows = [
        (
            decision.status.value,
            decision.desired.value,
            decision.run_at,
            decision.retry_count,
            decision.crash_count,
            clean(decision.exit_reason),
            clean(decision.error_message),
            now if decision.status in ENDED else None,
            job.id,
            job.run_lease,
            job.desired.value,
        )
        for job, decision in ended
    ]
    worker_id = ended[0][0].worker_id
    return database.many("jobs.finish", _FINISH, rows, durable=True, now=now, worker_id=worker_id)


def owned(database: Database, id: str, run_lease: int, worker_id: str | None) -> Job:
    """The job, if this attempt still holds the lease. Otherwise its payload is not read: it may have 16 MB."""
    found = database.rows("jobs.owned", id=checked_id(id), run_lease=run_lease, worker_id=worker_id)
    if not found:
        raise _lost(database, id, run_lease)
    return from_row(found[0])


def owned_outline(database: Database, id: str, run_lease: int, worker_id: str | None) -> Job:
    """The same as an outline, see `outline`."""
    for job in outlines(database, [checked_id(id)]):
        if (job.status, job.run_lease, job.worker_id) == (Status.RUNNING, run_lease, worker_id):
            return job
    raise _lost(database, id, run_lease)


def _lost(database: Database, id: str, run_lease: int) -> LeaseLost:
    found = database.rows("jobs.lease", id=id)
    if not found:
        return LeaseLost(f"job {id} was deleted")
    status, lease = found[0]["status"], found[0]["run_lease"]
    return LeaseLost(f"lease {run_lease} no longer holds job {id}: the job is {status} with lease {lease}")


def rescue(database: Database, job: Job, decision: Decision, line: str = "") -> bool:
    """Take a running job from an owner that is dead. False: it moved since it was looked at, so it lives.

    `line` is added to the log of the job, in the same transaction.
    """
    now = database.now()
    with database.transaction(durable=True) as transaction:
        rescued = transaction.rows(
            "jobs.rescue",
            id=job.id,
            run_lease=job.run_lease,
            heartbeat_seq=job.heartbeat_seq,
            seen=job.desired.value,
            status=decision.status.value,
            desired=decision.desired.value,
            run_at=decision.run_at,
            retry_count=decision.retry_count,
            crash_count=decision.crash_count,
            exit_reason=clean(decision.exit_reason),
            error_message=clean(decision.error_message),
            finished_at=now if decision.status in ENDED else None,
            now=now,
        )
        if rescued and line:
            logs.append_in(transaction, [NewLine(job.id, job.attempt, "warning", line, now, job.worker_id or "")])
    if rescued:
        database.wake_supervisors()
    return bool(rescued)


def running(database: Database) -> list[Job]:
    """The outlines of the running jobs of all workers."""
    return [from_row(row) for row in database.rows("jobs.running")]


def running_states(database: Database) -> list[Held]:
    """The running jobs of all workers, and what the users want of them."""
    found = database.rows("jobs.running_states")
    return [Held(row["id"], row["run_lease"], Wish(row["desired"])) for row in found]


def wish(database: Database, id: str, verb: Verb) -> Job:
    """Apply a verb of a user. If the job does not run, its status changes at once. A refused verb changes nothing.

    Returns the outline of the job.
    """
    while True:
        job = outline(database, id)
        change = answer(verb, job.status, job.desired)
        if job.shard is not None:
            raise Refused(f"cannot {verb} job {id}: it is shard {job.shard} of the crawl {job.parent_id}")
        if isinstance(change, Refusal):
            raise Refused(f"cannot {verb} job {id}: {change.why}")
        if change == Change(job.status, job.desired):
            return job
        changed = _change(database, job, change)
        if changed:
            database.wake_supervisors()
            return changed


def check_dedupe_key(database: Database, job: Job) -> None:
    """Raise `Refused` if this job, which has ended, cannot be retried because a live job has its dedupe key."""
    if job.dedupe_key and database.rows("jobs.live_with_key", tenant=job.tenant, dedupe_key=job.dedupe_key):
        raise Refused(f"another job with the dedupe key {job.dedupe_key!r} has not ended")


def _change(database: Database, job: Job, change: Change) -> Job | None:
    now = database.now()
    values: dict[str, Any] = {
        "id": job.id,
        "seen_status": job.status.value,
        "seen_desired": job.desired.value,
        "run_lease": job.run_lease,
        "status": change.status.value,
        "desired": change.desired.value,
        "run_at": now if change.due_now else job.run_at,
        "fresh_retries": int(change.fresh_retries),
        "finished_at": now if change.status in ENDED else None,
        "now": now,
    }
    try:
        if is_parent(job):
            with database.transaction(durable=True) as transaction:
                found = transaction.rows("jobs.change", **values)
                if found and change.status is not Status.QUEUED:
                    spread(transaction, job.id, change.desired, now)
        else:
            found = database.rows("jobs.change", durable=True, **values)
    except (Unavailable, DiskFull):
        raise
    except StoreError:
        check_dedupe_key(database, job)
        raise
    return from_row(found[0]) if found else None


def get(database: Database | Transaction, id: str) -> Job:
    found = database.rows("jobs.get", id=checked_id(id))
    if not found:
        raise NotFound(f"no job {id}")
    return from_row(found[0])


def outline(database: Database | Transaction, id: str) -> Job:
    """The job as in a list: long fields of a long payload are None (`store/short_payload.py`)."""
    found = outlines(database, [checked_id(id)])
    if not found:
        raise NotFound(f"no job {id}")
    return found[0]


def is_shortened(database: Database | Transaction, id: str) -> bool:
    """Whether the outline of a job lacks fields of its payload: those that it has as None."""
    return bool(database.rows("jobs.shortened", id=checked_id(id)))


def long_size(database: Database, id: str) -> int:
    """About how many bytes the payload of a job has if its outline lacks fields of it. 0: the outline is complete."""
    found = database.rows("jobs.long_size", id=checked_id(id))
    return int(found[0]["size"]) if found else 0


def outlines(database: Database | Transaction, ids: list[str]) -> list[Job]:
    """The outlines of the jobs with these ids that still exist, in this order."""
    if not ids:
        return []
    found = {row["id"]: from_row(row) for row in database.rows("jobs.outlines", ids=json.dumps(ids))}
    return [found[id] for id in ids if id in found]


def find(database: Database, name: str) -> Job:
    """The job that a user names: by its id, the first characters of its id, or `last`."""
    if name == "last":
        found = database.rows("jobs.newest")
        if not found:
            raise NotFound("there are no jobs yet")
        return from_row(found[0])
    prefix = _hyphened(name)
    if prefix is None:
        raise NotFound(f"no job {name!r}: an id looks like {LAST_ID.replace('f', '0')}; `last` is the newest job")
    matches = database.rows(
        "jobs.with_prefix",
        prefix=prefix,
        low=prefix + LAST_ID.replace("f", "0")[len(prefix) :],
        high=prefix + LAST_ID[len(prefix) :],
    )
    if len(matches) > 1:
        raise NotFound(f"the ids of several jobs begin with {name}: give more characters of the id")
    if not matches:
        raise NotFound(f"no job {name}; `silkline jobs` lists the jobs")
    return get(database, matches[0]["id"])


def page(
    database: Database,
    *,
    before: str = LAST_ID,
    wanted: int = 50,
    status: Status | None = None,
    kind: str | None = None,
) -> list[Job]:
    """Jobs, newest first, below the cursor `before`. They are outlines, see `outline`."""
    if not is_id(before):
        raise UsageError(f"{before!r} is not a cursor: a cursor is the id of the last job of the previous page")
    if status is not None:
        found = database.rows("jobs.page_by_status", before=before, wanted=wanted, status=status.value, kind=kind)
    elif kind is not None:
        found = database.rows("jobs.page_by_kind", before=before, wanted=wanted, kind=kind)
    else:
        found = database.rows("jobs.page", before=before, wanted=wanted)
    return outlines(database, [row["id"] for row in found])


def search(
    database: Database,
    text: str,
    *,
    before: str = LAST_ID,
    wanted: int = 50,
    status: Status | None = None,
    kind: str | None = None,
) -> list[Job]:
    """The same for jobs whose URL contains a text. Ignores case. Reads every job in the worst case."""
    found = database.rows(
        "jobs.search",
        before=before,
        wanted=wanted,
        text=clean(text).lower(),
        status=status.value if status else None,
        kind=kind,
    )
    return outlines(database, [row["id"] for row in found])


def pending_total(database: Database) -> int:
    """The number of queued URLs of running crawls."""
    return int(database.rows("jobs.pending_total")[0]["urls"])


def counts(database: Database) -> dict[Status, int]:
    found = {Status(row["status"]): row["jobs"] for row in database.rows("jobs.counts")}
    return {status: found.get(status, 0) for status in Status}


def note(database: Database, id: str, metadata: dict[str, Any]) -> None:
    """Replace the job's metadata."""
    if not database.rows("jobs.note", id=checked_id(id), metadata=to_json(metadata), now=database.now()):
        raise NotFound(f"no job {id}")


def amend(database: Database, id: str, changes: dict[str, Any]) -> Job:
    """Change the payload of a job that does not run, such as the sizes of a crawl. The caller has validated it."""
    while True:
        job = get(database, id)
        if job.status is Status.RUNNING:
            raise Refused(
                f"job {id} is running: to change its sizes, pause it first, then resume it with the new sizes"
            )
        payload, short = payload_columns({**job.payload, **changes})
        values: dict[str, Any] = {"payload": payload, "short_payload": short, "now": database.now()}
        if database.rows("jobs.amend", id=id, run_lease=job.run_lease, **values):
            return get(database, id)


def checked_id(id: str) -> str:
    """Raise `NotFound` if the text cannot be an id, because PostgreSQL would report an error."""
    if not is_id(id):
        raise NotFound(f"no job {id!r}")
    return id


def _hyphened(name: str) -> str | None:
    """An id, or the beginning of one, in its stored form. None: the text cannot be an id."""
    digits = name.lower().replace("-", "")
    if not digits or len(digits) > 32 or any(digit not in "0123456789abcdef" for digit in digits):
        return None
    places, text = (8, 12, 16, 20), ""
    for place, digit in enumerate(digits):
        text += ("-" if place in places else "") + digit
    return text


def fence(transaction: Transaction, job: Job, *, lock: bool = True) -> None:
    """Raise `LeaseLost` unless the attempt of `job` still holds the lease. `lock`: keep it so until the commit."""
    name = "urls.fence" if lock else "urls.glance"
    if not transaction.rows(name, job_id=job.id, run_lease=job.run_lease, worker_id=job.worker_id):
        raise LeaseLost(f"lease {job.run_lease} no longer holds job {job.id}")

"""Jobs that still say `running` although their owner, on this machine, is certainly dead.

The watchdog of a supervisor takes them back by itself. When a person says pause, resume, stop or cancel, nobody has to
wait for it: the job is taken back at once, and the verb becomes a fact. An owner that may be alive is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from silkline.errors import Refused
from silkline.kinds import registry
from silkline.model.job import AttemptEnd, Backoff, Decision, End, Job, Refusal, Status, Verb, Wish, answer, decide
from silkline.runner.leftovers import kill_marked
from silkline.store import jobs, workers
from silkline.store.database import Database
from silkline.store.identity import is_dead

# What becomes of an orphan before the verb is applied. A job that is to go on is paused first, so that nobody claims it
# before its new sizes are stored.
_FIRST = {Verb.PAUSE: Wish.PAUSE, Verb.RESUME: Wish.PAUSE, Verb.STOP: Wish.STOP, Verb.CANCEL: Wish.CANCEL}


def ask(database: Database, data: Path, id: str, verb: Verb, sizes: Mapping[str, int] | None = None) -> Job:
    """Apply what a person asks of a job, whether its owner lives or not. With `sizes` the next attempt has these."""
    job = jobs.get(database, id)
    if job.status is Status.RUNNING and verb in _FIRST and is_orphan(database, data, job):
        take_back(database, job, _FIRST[verb])
        job = jobs.get(database, id)
    if sizes:
        registry.check_payload(registry.kind_named(job.kind), {**job.payload, **sizes})
        change = answer(verb, job.status, job.desired)
        if isinstance(change, Refusal):
            raise Refused(f"cannot {verb} job {id}: {change.why}")
        jobs.amend(database, id, dict(sizes))
    return jobs.wish(database, id, verb)


def is_orphan(database: Database, data: Path, job: Job) -> bool:
    """Whether the owner of a running job is certainly dead. False where it is on another machine."""
    if job.status is not Status.RUNNING or job.worker_id is None:
        return False
    owner = workers.find(database, job.worker_id)
    pid, born_in = (owner.pid, owner.boot_id) if owner else (None, "")
    return is_dead(data, job.worker_id, pid=pid, born_in=born_in)


def take_back(database: Database, job: Job, wish: Wish) -> bool:
    """End what the dead owner left running, and give its job the state that is wished for."""
    assert job.worker_id is not None  # noqa: S101
    kill_marked(job.worker_id)
    wished = replace(job, desired=max(job.desired, wish, key=list(Wish).index))
    ended = AttemptEnd(End.RELEASED, "owner lost", f"{_owner(job)} is dead")
    decision = decide(wished, ended, backoff=Backoff(), now=database.now(), jitter=0.0)
    return jobs.rescue(database, job, decision, lost_line(job, f"{_owner(job)} is dead", decision))


def lost_line(job: Job, why: str, decision: Decision) -> str:
    """What the log of a job says of a rescue: who was lost, and which attempt goes on."""
    line = f"attempt {job.attempt} was lost: {why}"
    match decision.status:
        case Status.QUEUED:
            return (
                f"{line}; attempt {job.attempt + 1} goes on from the last checkpoint, at {decision.run_at:%H:%M:%S} UTC"
            )
        case Status.PAUSED:
            return f"{line}; the job is paused, attempt {job.attempt + 1} goes on from the last checkpoint"
        case _:
            return f"{line}; the job is {decision.status}, no attempt goes on"


def _owner(job: Job) -> str:
    process = f", process {job.pid}" if job.pid else ""
    return f"its owner {job.worker_id} on {job.host}{process}"

"""The commands of users for a job: pause, resume, stop, cancel, retry. The command line and the API call `ask`.

`store.jobs.wish` changes the job. Before that, `ask` looks for the owner of a running job. If the owner was a process
of this machine and is certainly dead, the job is taken back at once. Otherwise the watchdog of a supervisor does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from silkline.errors import Refused
from silkline.kinds import registry
from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, End, Job, Refusal, Status, Verb, Wish, answer, decide
from silkline.model.sharding import is_parent
from silkline.runner import shard_parents
from silkline.runner.leftovers import kill_tagged
from silkline.runner.rescue import rescue
from silkline.store import jobs, shards, workers
from silkline.store.identity import is_dead

# The status that the job of a dead owner gets before the verb is applied. A job that shall continue is paused first, so
# that no supervisor claims it before its new sizes are stored.
_FIRST = {Verb.PAUSE: Wish.PAUSE, Verb.RESUME: Wish.PAUSE, Verb.STOP: Wish.STOP, Verb.CANCEL: Wish.CANCEL}


def ask(database: Database, data: Path, id: str, verb: Verb, sizes: Mapping[str, float] | None = None) -> Job:
    """Carry out the request of a person, whether the owner of the job is alive or dead.

    `sizes` are the new sizes for the next attempt. Returns the outline of the job.
    """
    job = jobs.outline(database, id)
    if job.status is Status.RUNNING and verb in _FIRST:
        for each in (job, *(shards.of(database, id) if is_parent(job) else ())):
            if owner_is_dead(database, data, each):
                take_back(database, data, each, _FIRST[verb])
    if sizes:
        job = jobs.get(database, id)
        from silkline.kinds.specs import check_payload  # most commands change no sizes

        check_payload(registry.kind_named(job.kind), {**job.payload, **sizes})
        change = answer(verb, job.status, job.desired)
        if isinstance(change, Refusal):
            raise Refused(f"cannot {verb} job {id}: {change.why}")
        jobs.amend(database, id, dict(sizes))
    job = jobs.wish(database, id, verb)
    if is_parent(job) and shard_parents.decide(database, id) is not None:  # its shards may have ended already
        return jobs.outline(database, id)
    return job


def owner_is_dead(database: Database, data: Path, job: Job) -> bool:
    """Whether the owner of a running job is certainly dead. False if the owner is on another machine."""
    if job.status is not Status.RUNNING or job.worker_id is None:
        return False
    owner = workers.find(database, job.worker_id)
    pid, born_in = (owner.pid, owner.boot_id) if owner else (None, "")
    return is_dead(data, job.worker_id, pid=pid, born_in=born_in)


def take_back(database: Database, data: Path, job: Job, wish: Wish) -> bool:
    """Kill the processes that the dead owner left, and give its job the requested status."""
    assert job.worker_id is not None  # noqa: S101
    kill_tagged(job.worker_id)
    wished = replace(job, desired=max(job.desired, wish, key=list(Wish).index))
    ended = AttemptEnd(End.RELEASED, "owner lost", f"{_owner(job)} is dead")
    decision = decide(wished, ended, backoff=Backoff(), now=database.now(), jitter=0.0)
    return rescue(database, data, job, decision, f"{_owner(job)} is dead")


def _owner(job: Job) -> str:
    process = f", process {job.pid}" if job.pid else ""
    return f"its owner {job.worker_id} on {job.host}{process}"

"""Why a queued job has not started: no worker, no worker for its kind, no free disk space, or no free slot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal

from silkline.model.job import Job, Status
from silkline.model.sharding import IDLE
from silkline.store.workers import NO_SPACE, Worker

HoldUp = Literal["", "nobody", "kind", "disk", "slot"]
EXTERNAL: Final = "extension"  # the kind that external workers run; there is no list of those workers
SOON: Final = "Waiting for a worker…"
FOR_EXTERNAL: Final = "Waiting for an external worker to claim it (docs/how-to/external-workers.md)."
_WORDS: Final[dict[HoldUp, str]] = {
    "": SOON,
    "nobody": "No worker is running; start one with `silkline worker`.",
    "kind": "No running worker knows the kind {kind}; install its plug-in beside a worker, and restart the worker.",
    "disk": "All workers that can run it wait for free space on their disks.",
    "slot": "All slots are in use; it starts when a slot is free.",
}


def hold_up(alive: Sequence[Worker], kind: str | None = None) -> HoldUp:
    """What prevents jobs from starting: all jobs, or those of one kind. `alive` are the live workers."""
    # A command that runs one job of its own, such as `silkline crawl`, has no kinds: it runs no other job.
    takers = [worker for worker in alive if worker.kinds is None or worker.kinds]
    if not takers:
        return "nobody"
    if kind is not None:
        takers = [worker for worker in takers if worker.runs(kind)]
        if not takers:
            return "kind"
    if all(worker.state == NO_SPACE for worker in takers):
        return "disk"
    return "slot" if all(worker.state == NO_SPACE or worker.jobs_held >= worker.slots for worker in takers) else ""


def why_it_waits(job: Job, alive: Sequence[Worker], now: datetime) -> str | None:
    """What a queued job waits for, as a sentence. None: the job is not queued."""
    if job.status is not Status.QUEUED:
        return None
    if job.exit_reason == IDLE:
        return "Waits for links from other shards."
    if job.run_at > now:
        return f"Starts at {job.run_at:%Y-%m-%d %H:%M:%S} UTC"
    if job.kind == EXTERNAL:
        return FOR_EXTERNAL
    return _WORDS[hold_up(alive, job.kind)].format(kind=job.kind)

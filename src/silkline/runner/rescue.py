"""Takes a running job from a dead owner, and writes that to both logs of the job: the database and the log file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from silkline.metrics.instruments import CRASHES, RESCUES
from silkline.model.database import Database
from silkline.model.job import Decision, Job, Status
from silkline.runner.log_file import LogFile, is_json, log_path, printable
from silkline.store import jobs


def rescue(database: Database, data: Path, job: Job, decision: Decision, why: str) -> bool:
    """Give the job the decided status. Returns False if the job has changed, which means that its owner is alive."""
    line = printable(_line(job, why, decision))
    rescued = jobs.rescue(database, job, decision, line)
    if rescued:
        RESCUES.add()
        CRASHES.add(1, "supervisor_lost")
        path = log_path(data, job.id)
        file = LogFile(path, as_json=is_json(path))
        file.write_line(datetime.now(UTC), "warning", job.attempt, line, job=job.id, worker=job.worker_id)
        file.close()
    return rescued


def _line(job: Job, why: str, decision: Decision) -> str:
    """Names the lost owner, and the attempt that continues the job."""
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

"""The fleet: machines, queue and running jobs, as the database knows them, for API, web page and `silkline top`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from silkline.model.database import Database
from silkline.model.job import Status, Wish, shown_status
from silkline.model.ledger import Counts
from silkline.model.redaction import without_password
from silkline.model.usage import WorkerUsage
from silkline.store import jobs, urls, workers
from silkline.store.usage_view import UsageView, usage_view
from silkline.store.workers import Worker

MOST_JOBS = 200  # a fleet may run more; `running` counts them all


@dataclass(frozen=True, slots=True)
class MachineView:
    """One machine or container with live workers. Null: its workers have not told, or run an older version."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - pydantic reads it, nobody changes it

    host: str
    cores: int | None
    load: float | None = field(metadata={"description": "The load average of the last minute."})
    memory_total: int | None
    memory_used: int | None
    jobs: int = field(metadata={"description": "The jobs that its workers run."})
    slots: int
    workers: list[str]
    states: list[str] = field(metadata={"description": "The states of its workers.", "examples": [["running"]]})
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class QueueView:
    """The queued jobs of one kind."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    kind: str
    due: int = field(metadata={"description": "Jobs that a worker could start now."})
    later: int = field(metadata={"description": "Jobs that start at a later time."})
    oldest_seconds: float | None = field(metadata={"description": "How long the oldest of the due jobs has waited."})


@dataclass(frozen=True, slots=True)
class RunningJobView:
    """One running job."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    id: str
    kind: str
    shard: int | None = field(metadata={"description": "Which shard of its crawl this job is."})
    url: str | None
    status: str
    host: str | None
    worker_id: str | None
    attempt: int
    started_at: datetime | None
    pages: int
    failed: int
    pending_urls: int
    rate: float | None = field(metadata={"description": "Pages per second."})
    usage: UsageView | None


@dataclass(frozen=True, slots=True)
class FleetView:
    """All machines, the queue, and the running jobs."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    at: datetime
    machines: list[MachineView]
    queue: list[QueueView]
    running: int
    pending_urls: int = field(metadata={"description": "The queued URLs of all running jobs."})
    rate: float = field(metadata={"description": "Pages per second of the listed jobs."})
    jobs: list[RunningJobView] = field(metadata={"description": "Running jobs, at most 200."})


def fleet(database: Database, alive: Sequence[Worker]) -> FleetView:
    """The fleet now. `alive`: the live workers."""
    now = database.now()
    usages = workers.every_usage(database)
    rows = database.rows("fleet.running", wanted=MOST_JOBS)
    running = [_job(database, row, counts, usages, now) for row, counts in _with_counts(database, rows)]
    return FleetView(
        at=now,
        machines=_machines(alive, usages),
        queue=[_queue(row, now) for row in database.rows("fleet.queue", now=now)],
        running=database.rows("fleet.running_total")[0]["jobs"],
        pending_urls=jobs.pending_total(database),
        rate=round(sum(job.rate or 0.0 for job in running), 2),
        jobs=running,
    )


def _with_counts(database: Database, rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Counts]]:
    counts = urls.counts_of(database, [row["id"] for row in rows])
    return [(row, counts.get(row["id"], Counts())) for row in rows]


def _job(
    database: Database, row: dict[str, Any], counts: Counts, usages: dict[str, WorkerUsage], now: datetime
) -> RunningJobView:
    told = usages.get(row["worker_id"] or "")
    key = row["id"], row["run_lease"]
    attempts = told.attempts if told is not None else []
    usage = next((each for each in attempts if (each.job_id, each.run_lease) == key), None)
    rate = counts.live.get("rate")
    return RunningJobView(
        id=row["id"],
        kind=row["kind"],
        shard=row["shard"],
        url=without_password(row["request_url"]) if row["request_url"] else None,
        status=shown_status(Status.RUNNING, Wish(row["desired"]), now, now),
        host=row["host"],
        worker_id=row["worker_id"],
        attempt=row["attempt"],
        started_at=row["started_at"],
        pages=counts.done + counts.unchanged,
        failed=counts.failed,
        pending_urls=counts.queued + counts.in_flight,
        rate=round(float(rate), 2) if isinstance(rate, int | float) else None,
        usage=usage_view(usage, counts.live) if usage is not None else None,
    )


def _queue(row: dict[str, Any], now: datetime) -> QueueView:
    oldest = row["run_at"]
    waited = round((now - oldest).total_seconds(), 1) if oldest is not None else None
    return QueueView(row["kind"], row["due"], row["jobs"] - row["due"], waited)


def _machines(alive: Sequence[Worker], usages: dict[str, WorkerUsage]) -> list[MachineView]:
    """One entry for each host name and boot: several workers of a machine are one entry, each container is one."""
    groups: dict[tuple[str, str], list[Worker]] = {}
    for worker in alive:
        groups.setdefault((worker.host, worker.boot_id), []).append(worker)
    return [_machine(group, usages) for group in groups.values()]


def _machine(group: list[Worker], usages: dict[str, WorkerUsage]) -> MachineView:
    newest = sorted(group, key=lambda worker: worker.last_seen, reverse=True)
    told = next((usages[worker.id].machine for worker in newest if worker.id in usages), None)
    return MachineView(
        host=group[0].host,
        cores=told.cores if told else None,
        load=told.load if told else None,
        memory_total=told.memory_total if told else None,
        memory_used=told.memory_used if told else None,
        jobs=sum(worker.jobs_held for worker in group),
        slots=sum(worker.slots for worker in group),
        workers=[worker.id for worker in group],
        states=sorted({worker.state for worker in group}),
        last_seen=newest[0].last_seen,
    )

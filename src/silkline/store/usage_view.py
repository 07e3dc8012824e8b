"""What a running job uses, as JSON: the API, `--json`, the web page and `silkline top` show these fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from silkline.model.database import Database
from silkline.model.job import Job, Status
from silkline.model.usage import AttemptUsage
from silkline.store import workers

ROLES: Final = ("leader", "runner", "fetcher", "parser", "reader", "browser", "other")


@dataclass(frozen=True, slots=True)
class ProcessView:
    """One process of a running job."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - pydantic reads it, nobody changes it

    pid: int
    role: str = field(
        metadata={"description": "leader, fetcher, parser, reader, browser, runner or other.", "examples": ["fetcher"]}
    )
    memory: int = field(metadata={"description": "Resident memory, in bytes."})
    open_files: int
    cpus: float = field(metadata={"description": "The cores that it uses."})
    rate: float | None = field(metadata={"description": "Pages per second; null if this process fetches none."})


@dataclass(frozen=True, slots=True)
class UsageView:
    """What all processes of a running job use, and their limits. It is as old as the last heartbeat."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    cpus: float = field(metadata={"description": "The cores that it uses."})
    cpus_limit: float | None = field(metadata={"description": "The cores that it may use; null: no limit."})
    cpus_limited_by: Literal["cgroup", "affinity"] | None = field(metadata={"description": "What enforces the limit."})
    memory: int = field(metadata={"description": "Resident memory, in bytes. Shared memory counts for each process."})
    memory_limit: int | None
    open_files: int
    process_count: int
    processes: list[ProcessView] = field(metadata={"description": "The largest processes, at most 40."})


def usage_of_job(database: Database, job: Job, live: Mapping[str, Any]) -> UsageView | None:
    """What a running job uses. None: it does not run, or its worker has not told yet. `live` as in its counts."""
    if job.status is not Status.RUNNING or job.worker_id is None:
        return None
    told = workers.usage_of(database, job.worker_id)
    attempts = told.attempts if told is not None else []
    found = next((each for each in attempts if (each.job_id, each.run_lease) == (job.id, job.run_lease)), None)
    return usage_view(found, live) if found is not None else None


def usage_view(usage: AttemptUsage, live: Mapping[str, Any]) -> UsageView:
    rates = _rates(live)
    return UsageView(
        cpus=usage.cpus,
        cpus_limit=usage.cpus_limit,
        cpus_limited_by=usage.cpus_limited_by,  # type: ignore[arg-type]
        memory=usage.memory,
        memory_limit=usage.memory_limit,
        open_files=usage.open_files,
        process_count=usage.process_count,
        processes=[
            ProcessView(each.pid, each.role, each.memory, each.open_files, each.cpus, rates.get(each.pid))
            for each in sorted(usage.processes, key=lambda each: (_place(each.role), each.pid))
        ],
    )


def _place(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES)


def _rates(live: Mapping[str, Any]) -> dict[int, float]:
    """Pages per second by process, as the crawl last reported; another format is ignored."""
    said = live.get("rates")
    pairs = [each for each in said if isinstance(each, list) and len(each) == 2] if isinstance(said, list) else []
    return {pid: rate for pid, rate in pairs if isinstance(pid, int) and isinstance(rate, int | float)}

"""The registered workers. Each supervisor registers as a worker."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from silkline.model.database import Database
from silkline.model.usage import WorkerUsage, from_text

NO_SPACE = "waiting for disk space"


@dataclass(frozen=True, slots=True)
class Worker:
    id: str
    host: str
    pid: int
    boot_id: str
    slots: int
    jobs_held: int
    idle: bool
    state: str
    version: str
    started_at: datetime
    last_seen: datetime
    kinds: tuple[str, ...] | None = None
    """The kinds of job that it runs. None: an older version, which does not tell."""

    def runs(self, kind: str) -> bool:
        return self.kinds is None or kind in self.kinds


def register(
    database: Database,
    *,
    id: str,
    host: str,
    pid: int,
    boot_id: str,
    slots: int,
    version: str,
    kinds: Iterable[str] | None = None,
) -> None:
    known = None if kinds is None else json.dumps(sorted(kinds))
    values: dict[str, Any] = {
        "host": host,
        "pid": pid,
        "boot_id": boot_id,
        "slots": slots,
        "version": version,
        "kinds": known,
    }
    database.rows("workers.register", id=id, now=database.now(), **values)


def set_idle(database: Database, id: str, idle: bool) -> None:
    """Store whether this supervisor must be woken when a job arrives."""
    database.rows("workers.idle", id=id, idle=idle)


def everyone(database: Database) -> list[Worker]:
    """All registered workers, including dead ones that were not removed yet."""
    return [_from_row(row) for row in database.rows("workers.all")]


def alive(database: Database, stale_after: float) -> list[Worker]:
    """The workers with a heartbeat within the last `stale_after` seconds."""
    since = database.now() - timedelta(seconds=stale_after)
    return [worker for worker in everyone(database) if worker.last_seen > since]


def _from_row(row: dict[str, Any]) -> Worker:
    kinds = None if row["kinds"] is None else tuple(json.loads(row["kinds"]))
    return Worker(**{**row, "idle": bool(row["idle"]), "kinds": kinds})


def usage_of(database: Database, id: str) -> WorkerUsage | None:
    """What a worker uses, as its last heartbeat told."""
    found = database.rows("workers.usage_of", id=id)
    return from_text(found[0]["usage"]) if found else None


def every_usage(database: Database) -> dict[str, WorkerUsage]:
    """What each worker uses, by its id."""
    found = {row["id"]: from_text(row["usage"]) for row in database.rows("workers.usage")}
    return {id: usage for id, usage in found.items() if usage is not None}


def find(database: Database, id: str) -> Worker | None:
    return next((worker for worker in everyone(database) if worker.id == id), None)


def retire(database: Database, id: str) -> None:
    database.rows("workers.retire", id=id)


def delete_dead(database: Database, before: datetime) -> None:
    """Remove workers without a heartbeat since `before` that hold no job."""
    database.rows("workers.delete_dead", before=before)

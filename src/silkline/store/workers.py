"""The supervisors, as the others see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from silkline.store.database import Database

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


def register(database: Database, *, id: str, host: str, pid: int, boot_id: str, slots: int, version: str) -> None:
    database.rows(
        "workers.register", id=id, host=host, pid=pid, boot_id=boot_id, slots=slots, version=version, now=database.now()
    )


def set_idle(database: Database, id: str, idle: bool) -> None:
    """Whether this supervisor wants to be woken when a job comes."""
    database.rows("workers.idle", id=id, idle=idle)


def everyone(database: Database) -> list[Worker]:
    return [Worker(**{**row, "idle": bool(row["idle"])}) for row in database.rows("workers.all")]


def find(database: Database, id: str) -> Worker | None:
    return next((worker for worker in everyone(database) if worker.id == id), None)


def retire(database: Database, id: str) -> None:
    database.rows("workers.retire", id=id)


def bury(database: Database, before: datetime) -> None:
    """Forget supervisors not seen since `before` that hold no job."""
    database.rows("workers.bury", before=before)

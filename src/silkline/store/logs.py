"""Log lines of jobs. They can be read while the job runs. Their fields are those of every log (silkline/log.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from silkline.model.database import Database, Transaction
from silkline.model.redaction import cleaned
from silkline.store.shard_members import horizon, members
from silkline.store.text import clean

_COLUMNS = ("job_id", "attempt", "level", "message", "at", "worker", "event", "data")


@dataclass(frozen=True, slots=True)
class NewLine:
    job_id: str
    attempt: int
    level: str
    message: str
    at: datetime
    worker: str = ""
    event: str = ""
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """One stored line; `id` is the cursor."""

    id: int
    job_id: str
    attempt: int
    level: str
    message: str
    at: datetime
    worker: str | None
    event: str | None
    data: dict[str, Any] | None
    shard: int | None = None


def append(database: Database, lines: Sequence[NewLine]) -> None:
    """Store lines. Replaces characters that databases do not accept."""
    database.many("logs.append", _COLUMNS, _rows(lines))


def append_in(transaction: Transaction, lines: Sequence[NewLine]) -> None:
    """The same as part of a larger transaction."""
    transaction.many("logs.append", _COLUMNS, _rows(lines))


def _rows(lines: Sequence[NewLine]) -> list[tuple[Any, ...]]:
    return [
        (
            *(line.job_id, line.attempt, line.level, clean(line.message), line.at, line.worker or None),
            *(line.event or None, json.dumps(cleaned(line.data, clean), default=str) if line.data else None),
        )
        for line in lines
    ]


def _line(row: Mapping[str, Any]) -> LogLine:
    return LogLine(**{**row, "data": json.loads(row["data"]) if row["data"] else None})


def page(database: Database, job_id: str, *, after: int = 0, wanted: int = 500) -> list[LogLine]:
    """Lines after the cursor, oldest first."""
    return _lines(database, job_id, "logs.page", wanted=wanted, after=after)[:wanted]


def search(
    database: Database,
    job_id: str,
    *,
    levels: Sequence[str] = (),
    text: str = "",
    after: int = 0,
    wanted: int = 500,
) -> list[LogLine]:
    """Lines after the cursor that contain a text, of the given levels if there are any. Ignores case."""
    some = f",{','.join(levels)}," if levels else ""
    more: dict[str, Any] = {"after": after, "levels": some, "text": clean(text).lower()}
    return _lines(database, job_id, "logs.search", wanted=wanted, **more)[:wanted]


def tail(database: Database, job_id: str, wanted: int = 50) -> list[LogLine]:
    """The newest lines, oldest first."""
    return _lines(database, job_id, "logs.tail", wanted=wanted)[-wanted:]


def _lines(database: Database, job_id: str, statement: str, **parameters: Any) -> list[LogLine]:
    """Lines of a job and of its shards, oldest first. Those of a shard name it."""
    several = members(database, job_id)
    limit = horizon(database, job_id) if several != [job_id] else None
    found = [_line(row) for row in database.rows(statement, job_id=job_id, **parameters)]
    for shard, member in enumerate(several):
        if member != job_id:
            lines = [_line(row) for row in database.rows(statement, job_id=member, **parameters)]
            found += [replace(line, shard=shard, message=f"shard {shard}: {line.message}") for line in lines]
    if limit is not None:
        found = [line for line in found if line.id <= limit.lines]
    return sorted(found, key=attrgetter("id"))


def trim(database: Database, job_id: str, keep: int) -> None:
    database.rows("logs.trim", job_id=job_id, keep=keep)


def expire(database: Database, before: datetime, wanted: int = 5_000) -> int:
    """Delete a bounded number of lines of jobs that ended before a time. Returns their number."""
    return len(database.rows("logs.expire", before=before, wanted=wanted))

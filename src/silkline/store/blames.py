"""Inputs of a job that crashed the process that read them. The next attempt reads them in isolation.

They are stored just before the end of the attempt is. Blaming twice for one attempt is the same as blaming once, so a
crash in between does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from silkline.model.database import Database, Transaction
from silkline.model.job import Job
from silkline.store.text import clean

MOST_EXCUSED = 10
"""After this many blamed inputs every crash counts again, because the job itself seems to be the cause."""
MOST_TIMES = 2
"""An input that was blamed this often is not read again, so it cannot crash another process."""
_MOST = 1_000


def listed(database: Database, job_id: str) -> list[tuple[str, int]]:
    """Every blamed input of a job, and how often it was blamed."""
    return [(row["input"], row["times"]) for row in database.rows("blames.listed", job_id=job_id, wanted=_MOST)]


def add(database: Database, job: Job, blamed: Sequence[tuple[str, int]]) -> None:
    """Store inputs that crashed a process while the attempt continued, and how often."""
    with database.transaction() as transaction:
        _store(transaction, job, blamed)


def blame(database: Database, job: Job, inputs: Sequence[str]) -> bool:
    """Store inputs that the attempt read when it died. Returns whether the crash is excused: one input was new."""
    if not inputs:
        return False
    with database.transaction(durable=True) as transaction:
        known = {row["input"]: row for row in transaction.rows("blames.listed", job_id=job.id, wanted=_MOST)}
        fresh = []
        for name in map(clean, inputs):
            row = known.get(name)
            if row is None:
                fresh.append((name, 1))
            elif row["attempt"] == job.attempt:
                fresh.append((name, row["times"]))
            elif row["times"] < MOST_TIMES:
                fresh.append((name, row["times"] + 1))
        _store(transaction, job, fresh)
    return bool(fresh) and len(known) < MOST_EXCUSED


def _store(transaction: Transaction, job: Job, blamed: Sequence[tuple[str, int]]) -> None:
    for name, times in blamed:
        transaction.rows("blames.add", job_id=job.id, input=clean(name), times=times, attempt=job.attempt)

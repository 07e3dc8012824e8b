"""The history of the counters of a crawl, for charts: every second at first, later less often.

A sample is due after a two-hundredth of the crawl's age, so a week of crawling keeps about two thousand of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from silkline.model.database import Database, Transaction

FINEST = 1.0
SHARE = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters at one time. `seconds`: the crawling time so far; None in samples of an older version."""

    at: datetime
    discovered: int
    done: int
    unchanged: int
    failed: int
    skipped: int
    bytes: int
    seconds: float | None


def take(transaction: Transaction, job_id: str, *, age: float, now: datetime) -> None:
    """Store a sample if the last one is old enough. `age` is the crawling time so far."""
    after = now - timedelta(seconds=max(FINEST, age / SHARE))
    transaction.rows("count_history.take", job_id=job_id, after=after)


def every(database: Database, job_id: str, *, wanted: int = 5_000) -> list[Sample]:
    return [Sample(**row) for row in database.rows("count_history.all", job_id=job_id, wanted=wanted)]

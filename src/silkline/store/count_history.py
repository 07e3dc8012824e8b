"""The history of the counters of a crawl, for charts: every second at first, later less often.

A sample is due after a two-hundredth of the crawl's age, so a week of crawling keeps about two thousand of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from silkline.model.database import Database, Transaction
from silkline.store.shard_members import members

FINEST = 1.0
_ADDED = ("discovered", "done", "unchanged", "failed", "skipped", "bytes")
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
    """The samples of a job, oldest first. Those of its shards are added up."""
    several = [
        [Sample(**row) for row in database.rows("count_history.all", job_id=member, wanted=wanted)]
        for member in members(database, job_id)
    ]
    return several[0] if len(several) == 1 else _together(several)[-wanted:]


def _together(several: Sequence[Sequence[Sample]]) -> list[Sample]:
    """At each second with a sample: the sum of the last samples of all shards."""
    latest: dict[int, Sample] = {}
    found: dict[datetime, Sample] = {}
    start: datetime | None = None
    for sample, shard in sorted(((each, shard) for shard, some in enumerate(several) for each in some), key=_moment):
        latest[shard] = sample
        start = start or sample.at
        sums = {name: sum(getattr(each, name) for each in latest.values()) for name in _ADDED}
        seconds = (sample.at - start).total_seconds()
        found[sample.at.replace(microsecond=0)] = Sample(at=sample.at, **sums, seconds=seconds)
    return list(found.values())


def _moment(found: tuple[Sample, int]) -> tuple[datetime, int]:
    return found[0].at, found[1]

"""Counts of jobs for metrics. No query takes longer if there are more URLs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from silkline.model.database import Database

MOST_TENANTS = 50
OTHER = "other"


@dataclass(frozen=True, slots=True)
class JobCounts:
    by_kind: dict[tuple[str, str], int]
    """By kind and status."""
    waiting: dict[tuple[str, str], int] = field(default_factory=dict)
    """Queued jobs that may run now, by kind and tenant. Small tenants are one: `other`."""
    longest_wait: dict[str, float] = field(default_factory=dict)
    """Seconds, by kind."""
    heartbeat_age: float = 0.0
    """Seconds since the oldest heartbeat of a running job."""


def job_counts(database: Database) -> JobCounts:
    now = database.now()
    by_kind = {(row["kind"], row["status"]): row["jobs"] for row in database.rows("jobs.counts_by_kind")}
    rows = database.rows("jobs.waiting", now=now)
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["tenant"]] += row["jobs"]
    shown = {tenant for tenant, _ in sizes.most_common(MOST_TENANTS)}
    waiting: Counter[tuple[str, str]] = Counter()
    longest: dict[str, float] = {}
    for row in rows:
        waiting[row["kind"], row["tenant"] if row["tenant"] in shown else OTHER] += row["jobs"]
        age = max(0.0, (now - row["run_at"]).total_seconds())
        longest[row["kind"]] = max(age, longest.get(row["kind"], 0.0))
    oldest = database.rows("jobs.oldest_heartbeat")[0]["last_heartbeat"]
    age = max(0.0, (now - oldest).total_seconds()) if oldest is not None else 0.0
    return JobCounts(by_kind, dict(waiting), longest, age)

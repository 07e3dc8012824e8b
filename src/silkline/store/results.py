"""Reading what crawls brought home. Pages are written by the recorder, in `store.urls.record`, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from silkline.store.database import Database


@dataclass(frozen=True, slots=True)
class Result:
    """One row of `crawl_results`, by the names that exports and the API use."""

    id: int
    job_id: str
    url_id: int
    original_url: str | None
    final_url: str
    data: dict[str, Any]
    success: bool
    metadata: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Timing:
    """One result as charts need it."""

    url_id: int
    metadata: dict[str, Any]
    created_at: datetime


def _from_row(row: dict[str, Any]) -> Result:
    return Result(
        **{
            **row,
            "data": json.loads(row["data"]),
            "metadata": json.loads(row["metadata"]),
            "success": bool(row["success"]),
        }
    )


def page(database: Database, job_id: str, *, after: int = 0, wanted: int = 100) -> list[Result]:
    """Results of a job after the cursor `id`, in the order they were stored: whoever follows a crawl misses none."""
    return [_from_row(row) for row in database.rows("results.page", job_id=job_id, after=after, wanted=wanted)]


def newest(database: Database, job_id: str, *, wanted: int = 300) -> list[Timing]:
    """When the results discovered last were stored and what their metadata say, without their content."""
    found = database.rows("results.newest", job_id=job_id, wanted=wanted)
    return [Timing(row["url_id"], json.loads(row["metadata"]), row["created_at"]) for row in found]


def page_by_discovery(database: Database, job_id: str, *, after: int = 0, wanted: int = 100) -> list[Result]:
    """Results after the cursor `url_id`, in the order their URLs were found: the home page comes first."""
    rows = database.rows("results.page_by_discovery", job_id=job_id, after=after, wanted=wanted)
    return [_from_row(row) for row in rows]


def every(database: Database, job_id: str, *, chunk: int = 500) -> Iterator[Result]:
    """All results there are of a job, in the order their URLs were found, in constant memory."""
    after = 0
    while found := page_by_discovery(database, job_id, after=after, wanted=chunk):
        yield from found
        after = found[-1].url_id


def by_url_id(database: Database, job_id: str, url_id: int) -> Result | None:
    found = database.rows("results.by_url_id", job_id=job_id, url_id=url_id)
    return _from_row(found[0]) if found else None


def cached(database: Database, url_key: int, since: datetime) -> Result | None:
    """The newest good result for a URL, asked for or landed on, stored since a time."""
    found = database.rows("results.cached", url_key=url_key, since=since, yes=True)
    return _from_row(found[0]) if found else None


def count(database: Database, job_id: str) -> int:
    return int(database.rows("results.count", job_id=job_id)[0]["results"])

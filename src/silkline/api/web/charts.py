"""The data of the charts, as columns."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.ledger import Counts
from silkline.model.result_fields import number_in
from silkline.store import count_history, results, urls
from silkline.store.count_history import Sample

POINTS = 400
PAGES = 300
PAUSE = 5.0  # seconds without crawling that make a gap in the line
COLUMNS = ("at", "discovered", "done", "failed", "skipped", "seconds")


def history(database: Database, job: Job, counts: Counts) -> dict[str, list[Any]]:
    """The counters over time, reduced to what a screen can show, always with the newest.

    A row without values stands for a time in which the job did not run: the line has a gap there.
    """
    taken = count_history.every(database, job.id)
    step = max(1, len(taken) // POINTS)
    kept = taken[::-step][::-1]
    points: list[tuple[datetime, Sample | Counts]] = [(sample.at, sample) for sample in kept]
    if counts.updated_at and (not kept or counts.updated_at > kept[-1].at):
        points.append((counts.updated_at, counts))
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    before: tuple[datetime, Sample | Counts] | None = None
    for at, point in points:
        if before is not None and _paused(*before, at, point):
            columns["at"].append((before[0] + (at - before[0]) / 2).timestamp())
            for name in COLUMNS[1:]:
                columns[name].append(None)
        columns["at"].append(at.timestamp())
        columns["discovered"].append(point.discovered)
        columns["done"].append(point.done + point.unchanged)
        columns["failed"].append(point.failed)
        columns["skipped"].append(point.skipped)
        columns["seconds"].append(point.seconds)
        before = at, point
    return columns


def _paused(was: datetime, before: Sample | Counts, at: datetime, after: Sample | Counts) -> bool:
    """Whether the job did not run for a while between two points. The crawl itself counts its seconds."""
    if not before.seconds or after.seconds is None:
        return False  # this kind of job does not count them
    return (at - was).total_seconds() - (after.seconds - before.seconds) > PAUSE


def responses(database: Database, job: Job) -> dict[str, list[Any]]:
    """The response times of the latest pages, in milliseconds."""
    newest = sorted(results.newest(database, job.id, wanted=PAGES), key=lambda each: each.created_at)
    taken = ((each.created_at.timestamp(), number_in(each.metadata, "seconds")) for each in newest)
    timed = [(at, seconds) for at, seconds in taken if seconds is not None]
    return {
        "at": [at for at, _ in timed],
        "milliseconds": [round(1000 * seconds, 1) for _, seconds in timed],
    }


def status_bars(database: Database, job_id: str) -> list[dict[str, Any]]:
    """The number of URLs for each HTTP status. The width of a bar is a percentage of the longest."""
    found = urls.statuses(database, job_id)
    most = max((number for _, number in found), default=1)
    return [
        {"status": status, "urls": number, "width": max(1, round(100 * number / most)), "family": status // 100}
        for status, number in found
    ]

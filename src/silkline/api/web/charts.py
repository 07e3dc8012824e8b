"""The numbers behind the charts, as columns, which is how they are drawn."""

from __future__ import annotations

from typing import Any

from silkline.model.job import Job
from silkline.store import results, samples, urls
from silkline.store.database import Database
from silkline.store.urls import Counts

POINTS = 400
PAGES = 300


def history(database: Database, job: Job, counts: Counts) -> dict[str, list[Any]]:
    """The counters over time, thinned to what a screen shows, the newest always among them."""
    taken = samples.every(database, job.id)
    step = max(1, len(taken) // POINTS)
    kept = taken[::-step][::-1]
    columns: dict[str, list[Any]] = {
        "at": [sample.at.timestamp() for sample in kept],
        "discovered": [sample.discovered for sample in kept],
        "done": [sample.done + sample.unchanged for sample in kept],
        "failed": [sample.failed for sample in kept],
        "skipped": [sample.skipped for sample in kept],
    }
    if counts.updated_at and (not kept or counts.updated_at > kept[-1].at):
        columns["at"].append(counts.updated_at.timestamp())
        columns["discovered"].append(counts.discovered)
        columns["done"].append(counts.done + counts.unchanged)
        columns["failed"].append(counts.failed)
        columns["skipped"].append(counts.skipped)
    return columns


def responses(database: Database, job: Job) -> dict[str, list[Any]]:
    """How long the latest pages took, in milliseconds."""
    timed = [each for each in results.newest(database, job.id, wanted=PAGES) if _seconds(each.metadata) is not None]
    timed.sort(key=lambda each: each.created_at)
    return {
        "at": [each.created_at.timestamp() for each in timed],
        "milliseconds": [round(1000 * (_seconds(each.metadata) or 0), 1) for each in timed],
    }


def _seconds(metadata: dict[str, Any]) -> float | None:
    found = metadata.get("seconds")
    return float(found) if isinstance(found, int | float) else None


def status_bars(database: Database, job_id: str) -> list[dict[str, Any]]:
    """How servers answered, each bar in hundredths of the longest."""
    found = urls.statuses(database, job_id)
    most = max((number for _, number in found), default=1)
    return [
        {"status": status, "urls": number, "width": max(1, round(100 * number / most)), "family": status // 100}
        for status, number in found
    ]

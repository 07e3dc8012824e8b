"""Looking a page up among the results of all jobs, under every name that leads to it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from silkline.errors import NotFound
from silkline.model.cached import is_personal
from silkline.store import jobs, redirects, results
from silkline.store.database import Database
from silkline.store.results import Result

MOST_REDIRECTS: Final = 10


def newest_page(database: Database, key: int, since: datetime) -> Result | None:
    """The newest good result since a time for a URL, or for what it redirected to, whichever job stored them."""
    for _ in range(MOST_REDIRECTS):
        found = results.cached(database, key, since)
        moved = redirects.newest(database, key, since) if found is None else None
        if moved is None or _is_personal(database, moved.job_id):
            return found
        key = moved.target_key
    return None


def _is_personal(database: Database, job_id: str) -> bool:
    """A redirect may depend on the headers or cookies that it was asked with."""
    try:
        return is_personal(jobs.get(database, job_id).payload)
    except NotFound:
        return True

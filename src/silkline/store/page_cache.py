"""The cache: finds a stored page for a URL, by the URL that was requested or the URL after redirects.

Some results are stored with keys that no look-up finds (`HIDDEN_KEYS`). A copy from the cache would make an old page
look new. A page that was fetched with the headers, cookies or proxy of one user belongs to that user. `model.cached`
has the rule that says which stored page may answer for which request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from silkline.errors import NotFound
from silkline.metrics.instruments import CACHE_LOOKUPS
from silkline.model.cached import CAPTURED, EXTRACTED, is_for, is_personal, is_shaped, serves
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.url import canonical, url_key
from silkline.store import jobs, redirects, results
from silkline.store.results import Result

MOST_REDIRECTS: Final = 10


# `original_key` and `final_key` of a result that the cache must not find.
HIDDEN_KEYS: Final[tuple[None, int]] = (None, 0)
LONGEST_AGE: Final = 10**8  # seconds


def fresh(
    database: Database, url: str, payload: Mapping[str, Any], *, is_external: Callable[[str], bool]
) -> tuple[Job, Result] | None:
    """A stored page that may answer for `url` in a job with this payload, and the job that stored it.

    A result of a kind that external workers run (`is_external`) is never used: nobody checked it.
    """
    max_age, address = payload.get("max_age"), canonical(url)
    if not max_age or address is None or is_personal(payload) or is_shaped(payload):
        return None
    if any(payload.get(name) for name in CAPTURED):
        return None
    found = _serving(database, url_key(address), max_age, payload, is_external)
    CACHE_LOOKUPS.add(1, "page", "miss" if found is None else "hit")
    return found


def _serving(
    database: Database, key: int, max_age: float, payload: Mapping[str, Any], is_external: Callable[[str], bool]
) -> tuple[Job, Result] | None:
    since = database.now() - timedelta(seconds=min(max_age, LONGEST_AGE))
    found = newest_page(database, key, since, payload)
    try:
        job = jobs.get(database, found.job_id) if found else None
    except NotFound:  # it is being deleted
        return None
    if found is None or job is None or is_external(job.kind) or not is_for(job.payload, payload):
        return None
    will_do = serves(
        found.data,
        found.metadata,
        job.payload,
        content=payload.get("content") or "markdown",
        render=payload.get("render") or "never",
        allowed=payload.get("allow_private") or (),
        extracted={name: payload.get(name) for name in EXTRACTED},
    )
    return (job, found) if will_do else None


def newest_page(
    database: Database, key: int, since: datetime, asked: Mapping[str, Any] = MappingProxyType({})
) -> Result | None:
    """The newest good result since a time for a URL, or for what it redirected to, whichever job stored them.

    `asked` is the spec of the job that asks.
    """
    for _ in range(MOST_REDIRECTS):
        found = results.cached(database, key, since)
        moved = redirects.newest(database, key, since) if found is None else None
        if moved is None or not _is_redirect_for(database, moved.job_id, asked):
            return found
        key = moved.target_key
    return None


def _is_redirect_for(database: Database, job_id: str, asked: Mapping[str, Any]) -> bool:
    """A redirect may depend on the headers, cookies or user agent that it was asked with."""
    try:
        payload = jobs.get(database, job_id).payload
    except NotFound:
        return False
    return not is_personal(payload) and is_for(payload, asked)

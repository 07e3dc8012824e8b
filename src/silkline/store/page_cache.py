"""The cache: finds a stored page for a URL, by the URL that was requested or the URL after redirects.

Some results are stored with keys that no look-up finds (`HIDDEN_KEYS`). A copy from the cache would make an old page
look new. A page that was fetched with the headers, cookies or proxy of one user belongs to that user. `model.cached`
has the rule that says which stored page may answer for which request. The rule reads the outlines of jobs: each
look-up would otherwise read a spec of up to 16 MB. A job whose outline lacks a field of the rule answers for nobody.

Pages are found by the keys of URLs, and somebody can search for a URL that has the key of another one. So the URLs of
what was found are compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from silkline.errors import NotFound
from silkline.metrics.instruments import CACHE_LOOKUPS
from silkline.model.cached import CAPTURED, EXTRACTED, RULE_FIELDS, is_for, is_personal, is_shaped, serves
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.url import canonical, url_key
from silkline.store import jobs, redirects, results, urls
from silkline.store.redirects import Redirect
from silkline.store.results import Result
from silkline.store.short_payload import KEPT

MOST_REDIRECTS: Final = 10


# `original_key` and `final_key` of a result that the cache must not find.
HIDDEN_KEYS: Final[tuple[None, int]] = (None, 0)
LONGEST_AGE: Final = 10**8  # seconds


def fresh(
    database: Database, url: str, payload: Mapping[str, Any], *, is_external: Callable[[str], bool]
) -> tuple[Job, Result] | None:
    """A stored page that may answer for `url` in a job with this payload, and the outline of the job that stored it.

    A result of a kind that external workers run (`is_external`) is never used: nobody checked it.
    """
    max_age, address = payload.get("max_age"), canonical(url)
    if not max_age or address is None or is_personal(payload) or is_shaped(payload):
        return None
    if any(payload.get(name) for name in CAPTURED):
        return None
    found = _serving(database, address, max_age, payload, is_external)
    CACHE_LOOKUPS.add(1, "page", "miss" if found is None else "hit")
    return found


def _serving(
    database: Database, address: str, max_age: float, payload: Mapping[str, Any], is_external: Callable[[str], bool]
) -> tuple[Job, Result] | None:
    since = database.now() - timedelta(seconds=min(max_age, LONGEST_AGE))
    found = newest_page(database, address, since, payload)
    job = _storing_job(database, found.job_id) if found else None
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
    database: Database, address: str, since: datetime, asked: Mapping[str, Any] = MappingProxyType({})
) -> Result | None:
    """The newest good result since a time for a canonical URL, or for what it redirected to, whichever job stored them.

    `asked` is the spec of the job that asks.
    """
    for _ in range(MOST_REDIRECTS):
        found = results.cached(database, url_key(address), since)
        if found is not None:
            return found if _is_of(found, address) else None
        moved = redirects.newest(database, url_key(address), since)
        target = None if moved is None else _target(database, moved, address)
        if moved is None or target is None or not _is_redirect_for(database, moved.job_id, asked):
            return None
        address = target
    return None


def _is_of(found: Result, address: str) -> bool:
    return address in (found.final_url, found.original_url) or address == canonical(found.original_url or "")


def _target(database: Database, moved: Redirect, address: str) -> str | None:
    """Where a redirect leads. None: it is the redirect of another URL with the same key."""
    row = urls.by_id(database, moved.job_id, moved.url_id)
    if row is None or row.url != address or not row.detail or url_key(row.detail) != moved.target_key:
        return None
    return row.detail


def _is_redirect_for(database: Database, job_id: str, asked: Mapping[str, Any]) -> bool:
    """A redirect may depend on the headers, cookies or user agent that it was asked with."""
    job = _storing_job(database, job_id)
    return job is not None and not is_personal(job.payload) and is_for(job.payload, asked)


def _storing_job(database: Database, id: str) -> Job | None:
    """The outline of a job with stored pages. None: the rule cannot be applied to it.

    It is being deleted, or a field of the rule is too long for the outline.
    """
    try:
        job = jobs.outline(database, id)
    except NotFound:
        return None
    empty = [name for name in RULE_FIELDS - KEPT if name in job.payload and job.payload[name] is None]
    return None if empty and jobs.is_shortened(database, id) else job

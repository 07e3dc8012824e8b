"""The cache: a page that was fetched lately, asked for by the URL it was asked by or the one it landed on.

A copy that a job takes from the cache, and a page that was fetched with somebody's own headers, cookies or proxy, are
stored with keys that no look-up finds: the one would make an old page look new for ever, the other belongs to one
person. What an external worker delivered is never found either, since nobody checked that it is what the site sent.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from silkline.errors import NotFound
from silkline.kinds.registry import is_external
from silkline.model.cached import PERSONAL, is_personal, serves
from silkline.model.spec import PageSpec
from silkline.model.url import canonical, url_key
from silkline.store import jobs
from silkline.store.database import Database
from silkline.store.page_cache import newest_page
from silkline.store.results import Result

# What `original_key` and `final_key` of a result are that the cache must not find.
HIDDEN_KEYS: Final[tuple[None, int]] = (None, 0)


def fresh(database: Database, url: str, spec: PageSpec) -> Result | None:
    """A stored page for this URL that is new enough, and of the kind that the spec asks for."""
    address = canonical(url)
    if spec.max_age is None or address is None or is_personal(spec.model_dump(include={*PERSONAL})):
        return None
    since = database.now() - timedelta(seconds=min(spec.max_age, 1e9))
    found = newest_page(database, url_key(address), since)
    if found is None:
        return None
    try:
        job = jobs.get(database, found.job_id)
    except NotFound:  # it is being deleted
        return None
    if is_external(job.kind):
        return None
    will_do = serves(
        found.data,
        found.metadata,
        job.payload,
        content=spec.content,
        render=spec.render,
        allowed=spec.allow_private,
    )
    return found if will_do else None

"""The cache: a page that was fetched lately, asked for by the URL it was asked by or the one it landed on.

A copy that a job takes from the cache, and a page that was fetched with somebody's own headers or cookies, are stored
with keys that no look-up finds: the one would make an old page look new for ever, the other belongs to one person.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from silkline.model.spec import PageSpec
from silkline.model.url import canonical, url_key
from silkline.store import results
from silkline.store.database import Database
from silkline.store.results import Result

# What `original_key` and `final_key` of a result are that the cache must not find.
HIDDEN_KEYS: Final[tuple[None, int]] = (None, 0)


def is_personal(spec: PageSpec) -> bool:
    """Whether what this job fetches is for its owner alone."""
    return bool(spec.headers or spec.cookies)


def fresh(database: Database, url: str, spec: PageSpec) -> Result | None:
    """A stored page for this URL that is new enough, and of the kind that the spec asks for."""
    if spec.max_age is None or is_personal(spec) or spec.render == "always":
        return None
    address = canonical(url)
    if address is None:
        return None
    since = database.now() - timedelta(seconds=min(spec.max_age, 1e9))
    found = results.cached(database, url_key(address), since)
    return found if found is not None and _serves(found, spec.content) else None


def _serves(result: Result, content: str) -> bool:
    """A crawl that stored no text, or another sort of it, cannot answer."""
    stored = result.metadata.get("content")
    if stored is not None:
        return bool(stored == content)
    if content == "none":
        return True
    return {"markdown": "markdown", "text": "text"}.get(content, "") in result.data

"""The cache, for jobs that fetch pages. `store.page_cache` finds the pages, `model.cached` has the rule."""

from __future__ import annotations

from typing import Final

from silkline.kinds.registry import is_external
from silkline.model.cached import CAPTURED, RULE_FIELDS
from silkline.model.database import Database
from silkline.model.spec import PageSpec
from silkline.store import page_cache
from silkline.store.results import Result

# The fields of a spec that the look-up reads. The URLs of a spec are left out, because there may be many.
_FIELDS: Final = {*RULE_FIELDS, *CAPTURED, "max_age"}


def fresh(database: Database, url: str, spec: PageSpec) -> Result | None:
    """A stored page that may be used as the result for this URL."""
    found = page_cache.fresh(database, url, spec.model_dump(mode="json", include=_FIELDS), is_external=is_external)
    return found[1] if found else None

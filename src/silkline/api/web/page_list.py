"""The tab with the pages of a job. It searches and sorts them, one part at a time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from silkline.model.database import Database
from silkline.model.job import Job
from silkline.store import pages, urls
from silkline.store.url_view import url_view

ROWS = 100
STATES = ("done", "failed", "skipped", "queued")
# The heads of the columns: their words, the sort that a first click gives, and the one that a second click gives.
COLUMNS = (
    ("Page", "title", "-title"),
    ("Size", "-size", "size"),
    ("Time", "-time", "time"),
)
SORT_WORDS = {
    "found": "in order of discovery",
    "-found": "newest discovery first",
    "title": "by title, A to Z",
    "-title": "by title, Z to A",
    "size": "smallest first",
    "-size": "largest first",
    "time": "fastest first",
    "-time": "slowest first",
}


class PageQuery(BaseModel):
    """The query of the tab. An empty value means the default, because forms send empty values."""

    model_config = ConfigDict(extra="ignore")

    state: str = Field("", pattern=r"^(queued|done|unchanged|failed|skipped|)$")
    q: str = Field("", max_length=200)
    sort: str = Field("", pattern=r"^(-?(found|title|size|time)|)$")
    at: str = Field("", max_length=1000)
    looked_at: int = Field(0, ge=0, lt=2**62)

    def address(self, id: str, **changed: str | int) -> str:
        """The address of the list with some values changed; it begins at its first row again unless `at` is given."""
        values = {"state": self.state, "q": self.q, "sort": self.sort, **changed}
        query = urlencode({name: value for name, value in values.items() if value})
        return f"/jobs/{id}/pages" + (f"?{query}" if query else "")


def page_list(database: Database, job: Job, query: PageQuery) -> dict[str, Any]:
    """The rows of the tab, and how many URLs the search has read."""
    sort, text = query.sort or "found", query.q.replace("\x00", "").strip()
    found = pages.search(
        database, job.id, sort=sort, cursor=query.at, text=text, state=query.state or None, wanted=ROWS
    )
    rows = urls.by_ids(database, job.id, found.ids)
    facts = pages.of(database, job.id, found.ids)
    sources = urls.by_ids(database, job.id, [row.found_on for row in rows.values() if row.found_on is not None])
    shown = [(url_view(rows[id], sources), facts.get(id)) for id in found.ids if id in rows]
    looked_at = query.looked_at + found.looked_at
    further = query.address(job.id, at=found.cursor, looked_at=looked_at) if found.cursor else ""
    return {
        "rows": shown,
        "further": further,
        "searching": bool(further) and not shown,
        "looked_at": looked_at,
        "whole": len(shown) == ROWS,
        "list": query,
        "sort": sort,
        "sort_words": SORT_WORDS,
        "columns": COLUMNS,
        "states": STATES,
    }

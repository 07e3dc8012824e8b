"""What became of one URL of a crawl, in words, and the way that led to it."""

from __future__ import annotations

from typing import Any

from silkline.api.views import links_in_view, links_out_view, result_view, url_view
from silkline.errors import NotFound, UsageError
from silkline.model.job import Job
from silkline.model.url import canonical, url_key
from silkline.store import results, urls
from silkline.store.backlinks import into, out_of
from silkline.store.database import Database
from silkline.store.urls import Url

LONGEST_WAY = 50


def explain(database: Database, job: Job, asked: str, *, content: bool = False) -> dict[str, Any]:
    address = canonical(asked)
    if address is None:
        raise UsageError(f"{asked[:200]!r} is not a web address")
    found = urls.by_key(database, job.id, url_key(address))
    if found is None:
        raise NotFound(f"job {job.id} has not seen {address}{urls.why_not_stored(database, job.id)}")
    way = way_to(database, found)
    sources = {each.id: each for each in way}
    result = results.by_url_id(database, job.id, found.id)
    links_out = out_of(database, found)
    finders = urls.by_ids(database, job.id, [each.found_on for each in links_out.urls if each.found_on is not None])
    return {
        "url": url_view(found, sources),
        "says": in_words(found),
        "path": [url_view(each, sources) for each in way],
        "result": result_view(result, content=content) if result else None,
        "links_in": links_in_view(into(database, job.id, [found])[found.id]),
        "links_out": links_out_view(links_out, finders),
    }


def way_to(database: Database, url: Url) -> list[Url]:
    """From the seed to the URL, by the page that named each first."""
    way = [url]
    while way[-1].found_on is not None and len(way) < LONGEST_WAY:
        source = urls.by_id(database, url.job_id, way[-1].found_on)
        if source is None or source in way:
            break
        way.append(source)
    return way[::-1]


def in_words(url: Url) -> str:
    status = f" (HTTP {url.http_status})" if url.http_status else ""
    why = f": {url.reason}" if url.reason else ""
    detail = f", {url.detail}" if url.detail else ""
    match url.state:
        case "done":
            return f"It was fetched and stored{status}."
        case "unchanged":
            return f"It has not changed since it was last fetched{status}."
        case "failed":
            return f"It failed after {url.attempts} {'try' if url.attempts == 1 else 'tries'}{why}{status}{detail}."
        case "skipped":
            return f"It was skipped{why}{detail}."
    return f"It is queued; {url.attempts} tries so far."

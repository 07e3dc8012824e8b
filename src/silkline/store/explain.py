"""What is known about one URL of a crawl: its state in words, the path from the seed to it, its result and its links.

The API, the web page and the command line all read it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from silkline.errors import NotFound, UsageError
from silkline.model.database import Database
from silkline.model.ledger import Url
from silkline.model.url import canonical, url_key
from silkline.store import results, urls
from silkline.store.backlinks import LinksIn, LinksOut, into, out_of
from silkline.store.results import Result

LONGEST_PATH: Final = 50


@dataclass(frozen=True, slots=True)
class ExplainedUrl:
    """One URL with everything that the ledger, the results and the links say about it."""

    url: Url
    path: tuple[Url, ...]
    """From the seed to the URL itself, by the page that linked first to each."""
    result: Result | None
    links_in: LinksIn
    links_out: LinksOut


def explain(database: Database, job_id: str, asked: str) -> ExplainedUrl:
    """Everything about one URL of a job."""
    address = canonical(asked)
    if address is None:
        raise UsageError(f"{asked[:200]!r} is not a web address")
    found = urls.by_key(database, job_id, url_key(address), address)
    if found is None:
        raise NotFound(f"{address} is not in the ledger of job {job_id}{urls.why_not_stored(database, job_id)}")
    return explained(database, found)


def explained(database: Database, url: Url) -> ExplainedUrl:
    """Everything about a URL of the ledger."""
    return ExplainedUrl(
        url=url,
        path=tuple(path_to(database, url)),
        result=results.by_url_id(database, url.job_id, url.id),
        links_in=into(database, url.job_id, [url])[url.id],
        links_out=out_of(database, url),
    )


def path_to(database: Database, url: Url) -> list[Url]:
    """The pages from the seed to the URL, and the URL itself, by the page that linked first to each."""
    path = [url]
    while path[-1].found_on is not None and len(path) < LONGEST_PATH:
        source = urls.by_id(database, url.job_id, path[-1].found_on)
        if source is None or source in path:
            break
        path.append(source)
    return path[::-1]


def in_words(url: Url) -> str:
    """The state of a URL as a sentence."""
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
    return f"It is queued; {url.attempts} {'try' if url.attempts == 1 else 'tries'} so far."

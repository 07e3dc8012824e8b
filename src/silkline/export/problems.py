"""What went wrong in a crawl, grouped by cause, with examples and the pages that led there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from silkline.store import urls
from silkline.store.database import Database
from silkline.store.urls import Url

PAGE = 1_000
_LONGEST_CHAIN = 12


@dataclass(frozen=True, slots=True)
class Example:
    """One URL that failed; `source` is the page that names it, None for a seed; `via` the redirects between the two."""

    url: str
    http_status: int | None
    detail: str | None
    attempts: int
    source: str | None
    via: tuple[str, ...] = ()


@dataclass(slots=True)
class Problem:
    """A cause, and what it struck."""

    reason: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)


def grouped(database: Database, job_id: str, *, state: str = urls.FAILED, examples: int = 5) -> list[Problem]:
    """The causes, most frequent first."""
    found: dict[str, Problem] = {}
    for url in ledger(database, job_id, state=state):
        problem = found.setdefault(url.reason or "unknown", Problem(url.reason or "unknown"))
        problem.count += 1
        if len(problem.examples) < examples:
            problem.examples.append(_example(database, job_id, url))
    return sorted(found.values(), key=lambda problem: (-problem.count, problem.reason))


def ledger(database: Database, job_id: str, *, state: str | None = None) -> Iterator[Url]:
    """Rows of the ledger, in constant memory."""
    after = 0
    while page := urls.page(database, job_id, after=after, wanted=PAGE, state=state):
        yield from page
        after = page[-1].id


def _example(database: Database, job_id: str, url: Url) -> Example:
    via: list[str] = []
    source = _finder(database, job_id, url)
    while source is not None and source.reason == "redirected" and len(via) < _LONGEST_CHAIN:
        via.append(source.url)
        source = _finder(database, job_id, source)
    return Example(
        url.url, url.http_status, url.detail, url.attempts, source.url if source else None, tuple(reversed(via))
    )


def _finder(database: Database, job_id: str, url: Url) -> Url | None:
    return urls.by_id(database, job_id, url.found_on) if url.found_on else None

"""The failed URLs of a crawl, grouped by reason, with examples and the pages that link to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from silkline.model.database import Database
from silkline.model.ledger import FAILED, Url
from silkline.store import urls
from silkline.store.backlinks import LinksIn, into

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Example:
    """One failed URL and the links to it; `source` is the first of them, None for a seed."""

    url: str
    http_status: int | None
    detail: str | None
    attempts: int
    source: str | None
    links_in: LinksIn


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """A reason, and the URLs that failed with it."""

    reason: str
    count: int
    examples: list[Example]


def grouped(database: Database, job_id: str, *, state: str = FAILED, examples: int = 5) -> list[FailureGroup]:
    """The reasons, most frequent first."""
    counts: Counter[str] = Counter()
    shown: dict[str, list[Url]] = {}
    for url in ledger(database, job_id, state=state):
        reason = url.reason or "unknown"
        counts[reason] += 1
        if counts[reason] <= examples:
            shown.setdefault(reason, []).append(url)
    links = into(database, job_id, list(chain.from_iterable(shown.values())))
    order = sorted(counts, key=lambda reason: (-counts[reason], reason))
    return [
        FailureGroup(reason, counts[reason], [_example(url, links[url.id]) for url in shown[reason]])
        for reason in order
    ]


def ledger(database: Database, job_id: str, *, state: str | None = None, after: int = 0) -> Iterator[Url]:
    """Iterate over rows of the ledger, in constant memory."""
    while page := urls.page(database, job_id, after=after, wanted=PAGE, state=state):
        yield from page
        after = page[-1].id


def _example(url: Url, links: LinksIn) -> Example:
    source = links.sources[0].url if links.sources else None
    return Example(url.url, url.http_status, url.detail, url.attempts, source, links)

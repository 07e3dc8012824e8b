"""The links of a crawl as a table: source, target, text and rel of the link, state and HTTP status of the target.

Text and rel are known only if the job kept the fact `links`. Other jobs have the addresses that the ledger knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from silkline.export.large_rows import LargeRow
from silkline.export.row_files import Columns
from silkline.export.rows import announced_results, content_size
from silkline.model.database import Database
from silkline.model.job import ENDED
from silkline.model.ledger import Url
from silkline.model.url import url_key
from silkline.portions import portions_of
from silkline.store import jobs, links, urls
from silkline.store.results import Result

PAGES: Final = 200
"""Pages whose links are looked up at once, unless they have very many."""
LINKS: Final = 20_000
_SIZE_OF_LINK: Final = 400


class LinkRow(NamedTuple):
    """`state` and `status` are null for a target that the crawl did not store, such as a feed or a nofollow link."""

    source: str
    target: str
    text: str | None
    rel: str | None
    state: str | None
    status: int | None


COLUMNS: Final = Columns(LinkRow._fields, frozenset({"status"}))


def links_of(database: Database, job_id: str) -> Iterator[LinkRow | LargeRow | None]:
    """Every link of a job, page after page. None after some pages that have no links."""
    job = jobs.outline(database, job_id)
    if job.status in ENDED:
        urls.index(database, job_id)  # otherwise each look-up reads the whole ledger
    facts = job.payload.get("facts") or ()
    if {"all", "links"} & set([facts] if isinstance(facts, str) else facts):
        yield from _with_texts(database, job_id)
    else:
        yield from _by_key(database, job_id)


def _with_texts(database: Database, job_id: str) -> Iterator[LinkRow | LargeRow | None]:
    for results in portions_of(announced_results(database, job_id), PAGES, _number, LINKS):
        known = [
            (result.final_url, link)
            for result in results
            if isinstance(result, Result)
            for link in _outlinks(result)
            if isinstance(link, Mapping) and isinstance(link.get("url"), str)
        ]
        large = results[-1] if isinstance(results[-1], LargeRow) else None
        results.clear()  # with the contents of the pages
        if not known:
            yield None
        for begin in range(0, len(known), LINKS):  # a single page may have more
            some = known[begin : begin + LINKS]
            targets = urls.by_keys(database, job_id, list({url_key(link["url"]) for _, link in some}))
            for source, link in some:
                state, status = _end(targets.get(url_key(link["url"])))
                yield LinkRow(source, link["url"], _text(link.get("text")), _text(link.get("rel")), state, status)
        if large is not None:
            known.clear()
            yield large


def _by_key(database: Database, job_id: str) -> Iterator[LinkRow | None]:
    for pages in portions_of(links.every(database, job_id), PAGES, lambda page: len(page[1]), LINKS):
        sources = urls.by_ids(database, job_id, [id for id, _ in pages])
        targets = urls.by_keys(database, job_id, list({key for _, keys in pages for key in keys}))
        if not targets:
            yield None
        for id, keys in pages:
            for target in (targets[key] for key in keys if key in targets and id in sources):
                yield LinkRow(sources[id].url, target.url, None, None, *_end(target))


def _number(result: Result | LargeRow) -> int:
    """Of the links of a result. Long links, and a page with much other data, count for more.

    The links of other pages are written before the next large page is read.
    """
    if isinstance(result, LargeRow):
        return LINKS
    return max(len(_outlinks(result)), content_size(result) // _SIZE_OF_LINK)


def _outlinks(result: Result) -> list[Any]:
    found = result.data.get("outlinks")
    return found if isinstance(found, list) else []


def _end(target: Url | None) -> tuple[str | None, int | None]:
    return (None, None) if target is None else (target.state, target.http_status)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None

"""The links of one URL within its crawl: the pages that link to it, and the URLs that it links to.

While a crawl runs, these are the links of its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from silkline.model.database import Database
from silkline.model.ledger import REDIRECTED, Url
from silkline.store import links, urls
from silkline.store.links import Sources

MOST_SOURCES: Final = 20
MOST_TARGETS: Final = 100
_LOOKED_UP: Final = 10_000
_SITEMAPS: Final = ("robots", "sitemap_index")


@dataclass(frozen=True, slots=True)
class Backlink:
    """A place that contains a link. `via`: the redirects between it and the URL, in the order of the requests."""

    id: int
    url: str
    kind: Literal["page", "sitemap", "redirect"]
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinksIn:
    """The number of pages that link to a URL, and the first of them."""

    count: int = 0
    sources: tuple[Backlink, ...] = ()


@dataclass(frozen=True, slots=True)
class LinksOut:
    """How many addresses a page names, and the first of them; `unknown` are not in the ledger: it must not follow them.

    `count` is None where only those are known that the page was the first to name.
    """

    count: int | None
    unknown: int
    urls: tuple[Url, ...]


def into(database: Database, job_id: str, targets: Sequence[Url], *, most: int = MOST_SOURCES) -> dict[int, LinksIn]:
    """The pages that lead to each of these URLs, by their ids. Reads the links of the job once, and once per redirect.

    A redirect is replaced by the pages that link to it. If no page links to it, the redirect itself is listed.
    """
    return _into(database, job_id, targets, most, frozenset())


def _into(
    database: Database, job_id: str, targets: Sequence[Url], most: int, before: frozenset[int]
) -> dict[int, LinksIn]:
    found = links.sources(database, job_id, [target.url_key for target in targets], most=most)
    for target in targets:
        # A crawl from before links were written down knows the page that named a URL first.
        if not found[target.url_key].count and target.found_on:
            found[target.url_key] = Sources(1, [target.found_on])
    rows = urls.by_ids(database, job_id, [id for each in found.values() for id in each.ids])
    before |= {target.id for target in targets}  # redirects can go round in circles
    turns = [row for row in rows.values() if row.reason == REDIRECTED and row.id not in before]
    further = _into(database, job_id, turns, most, before) if turns else {}
    return {target.id: _links_in(found[target.url_key], rows, further, most) for target in targets}


def _links_in(found: Sources, rows: Mapping[int, Url], further: Mapping[int, LinksIn], most: int) -> LinksIn:
    count, sources = found.count, []
    for row in (rows[id] for id in sorted(found.ids) if id in rows):
        turned = further.get(row.id)
        if turned is not None and turned.sources:
            count += turned.count - 1
            sources += [replace(source, via=(*source.via, row.url)) for source in turned.sources]
        else:
            sources.append(Backlink(row.id, row.url, _kind(row)))
    return LinksIn(count, tuple(sources[:most]))


def _kind(row: Url) -> Literal["page", "sitemap", "redirect"]:
    if row.reason == REDIRECTED:
        return "redirect"
    return "sitemap" if row.found_via in _SITEMAPS else "page"


def out_of(database: Database, url: Url, *, most: int = MOST_TARGETS) -> LinksOut:
    """The URLs that a page links to, in the order of the page."""
    keys = links.keys_of(database, url.job_id, url.id)
    if keys is None:
        return LinksOut(None, 0, tuple(urls.named_on(database, url.job_id, url.id, wanted=most)))
    asked = keys[:_LOOKED_UP]
    rows = urls.by_keys(database, url.job_id, asked)
    known = [rows[key] for key in asked if key in rows]
    return LinksOut(len(keys), len(asked) - len(known), tuple(known[:most]))

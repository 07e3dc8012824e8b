"""What a URL, a result and an explanation look like as JSON, in the API and with `--json` of the command line.

The dataclasses are the contract. The API documents and answers them, so a field has one definition only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from silkline.model.database import Database
from silkline.model.ledger import Url
from silkline.store import urls
from silkline.store.backlinks import LinksIn, LinksOut
from silkline.store.explain import ExplainedUrl, in_words
from silkline.store.results import Result

UrlState = Literal["queued", "done", "unchanged", "failed", "skipped"]
_CONTENT = ("markdown", "text", "transcript", "html")


@dataclass(frozen=True, slots=True)
class ResultView:
    """One result."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - pydantic reads it, nobody changes it

    id: int
    job_id: str
    url_id: int
    original_url: str | None
    final_url: str
    data: dict[str, Any] = field(metadata={"description": "`markdown`, `title`, …"})
    success: bool
    metadata: dict[str, Any] = field(metadata={"description": "`http_status`, `error`, timings, …"})
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UrlView:
    """One URL of the ledger."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    id: int
    url: str
    host: str
    depth: int
    state: UrlState
    reason: str | None
    detail: str | None
    http_status: int | None
    attempts: int
    found_via: str
    found_on: str | None = field(metadata={"description": "The first page that links to it."})
    found_on_id: int | None


@dataclass(frozen=True, slots=True)
class LinkSourceView:
    """A place that links to a URL."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    id: int
    url: str
    kind: Literal["page", "sitemap", "redirect"]
    via: tuple[str, ...] = field(
        metadata={"description": "The redirects between this place and the URL, in the order of the requests."}
    )


@dataclass(frozen=True, slots=True)
class LinksInView:
    """The number of links to the URL, as of the last checkpoint, and the first places that contain them."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    count: int
    sources: list[LinkSourceView]


@dataclass(frozen=True, slots=True)
class LinksOutView:
    """The number of addresses that the page links to, and the first of them, in the order of the page."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    count: int | None = field(
        metadata={"description": "Null if only the links are known that no other page contained before."}
    )
    unknown: int = field(
        metadata={"description": "This many are not in the ledger, because a crawler must not follow them."}
    )
    urls: list[UrlView]


@dataclass(frozen=True, slots=True)
class ErrorView(UrlView):
    """A URL that failed or was skipped, with the pages that link to it."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    links_in: LinksInView


@dataclass(frozen=True, slots=True)
class Explanation:
    """The state of one URL, the path from the seed to it, the pages that link to it, and the URLs that it links to."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    url: UrlView
    says: str
    path: list[UrlView]
    result: ResultView | None
    links_in: LinksInView
    links_out: LinksOutView


def url_views(database: Database, job_id: str, found: Sequence[Url]) -> list[UrlView]:
    """URLs of a job, each with the first page that links to it."""
    sources = first_sources(database, job_id, found)
    return [url_view(url, sources) for url in found]


def first_sources(database: Database, job_id: str, found: Sequence[Url]) -> dict[int, Url]:
    """The pages that linked first to these URLs, by id."""
    return urls.by_ids(database, job_id, [url.found_on for url in found if url.found_on is not None])


def result_view(result: Result, *, content: bool = True) -> ResultView:
    data = result.data if content else {name: each for name, each in result.data.items() if name not in _CONTENT}
    return ResultView(
        id=result.id,
        job_id=result.job_id,
        url_id=result.url_id,
        original_url=result.original_url,
        final_url=result.final_url,
        data=data,
        success=result.success,
        metadata=result.metadata,
        created_at=result.created_at,
    )


def url_view(url: Url, found_on: Mapping[int, Url]) -> UrlView:
    return UrlView(**_url_fields(url, found_on))


def error_view(url: Url, found_on: Mapping[int, Url], links: LinksIn) -> ErrorView:
    return ErrorView(**_url_fields(url, found_on), links_in=links_in_view(links))


def _url_fields(url: Url, found_on: Mapping[int, Url]) -> dict[str, Any]:
    source = found_on.get(url.found_on) if url.found_on is not None else None
    return {
        "id": url.id,
        "url": url.url,
        "host": url.host,
        "depth": url.depth,
        "state": url.state,
        "reason": url.reason,
        "detail": url.detail,
        "http_status": url.http_status,
        "attempts": url.attempts,
        "found_via": url.found_via,
        "found_on": source.url if source else None,
        "found_on_id": url.found_on,
    }


def links_in_view(links: LinksIn) -> LinksInView:
    return LinksInView(
        count=links.count,
        sources=[LinkSourceView(id=each.id, url=each.url, kind=each.kind, via=each.via) for each in links.sources],
    )


def links_out_view(database: Database, job_id: str, links: LinksOut) -> LinksOutView:
    return LinksOutView(count=links.count, unknown=links.unknown, urls=url_views(database, job_id, links.urls))


def explanation(database: Database, found: ExplainedUrl, *, content: bool) -> Explanation:
    on_path = {each.id: each for each in found.path}
    return Explanation(
        url=url_view(found.url, on_path),
        says=in_words(found.url),
        path=[url_view(each, on_path) for each in found.path],
        result=result_view(found.result, content=content) if found.result else None,
        links_in=links_in_view(found.links_in),
        links_out=links_out_view(database, found.url.job_id, found.links_out),
    )

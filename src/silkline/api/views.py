"""Makes the answers of the API (`answers`) from rows of the store. `store.job_view` makes those of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from silkline.api.answer_models import (
    ErrorView,
    Explanation,
    HostView,
    LineView,
    LinksInView,
    LinkSourceView,
    LinksOutView,
    ReasonView,
    ResultView,
    TokenView,
    UrlView,
    WaitView,
    WorkerView,
)
from silkline.model.database import Database
from silkline.model.ledger import Url
from silkline.model.redaction import without_secrets
from silkline.model.wait import Wait, in_words, moment
from silkline.store import urls
from silkline.store.backlinks import LinksIn, LinksOut
from silkline.store.explain import ExplainedUrl
from silkline.store.explain import in_words as state_in_words
from silkline.store.logs import LogLine
from silkline.store.results import Result
from silkline.store.tokens import Token
from silkline.store.workers import Worker

_CONTENT = ("markdown", "text", "transcript", "html")


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


def links_out_view(links: LinksOut, found_on: Mapping[int, Url]) -> LinksOutView:
    shown = [url_view(each, found_on) for each in links.urls]
    return LinksOutView(count=links.count, unknown=links.unknown, urls=shown)


def explanation(database: Database, found: ExplainedUrl, *, content: bool) -> Explanation:
    on_path = {each.id: each for each in found.path}
    linked_first = [each.found_on for each in found.links_out.urls if each.found_on is not None]
    return Explanation(
        url=url_view(found.url, on_path),
        says=state_in_words(found.url),
        path=[url_view(each, on_path) for each in found.path],
        result=result_view(found.result, content=content) if found.result else None,
        links_in=links_in_view(found.links_in),
        links_out=links_out_view(found.links_out, urls.by_ids(database, found.url.job_id, linked_first)),
    )


def reason_views(reasons: Sequence[tuple[str, str, int]]) -> list[ReasonView]:
    return [
        ReasonView(state=state, reason=reason, urls=number)  # type: ignore[arg-type]
        for state, reason, number in reasons
    ]


def host_view(row: Mapping[str, Any]) -> HostView:
    return HostView(**row)


def wait_view(wait: Wait, now: datetime) -> WaitView:
    fields: dict[str, Any] = {**wait._asdict(), "next_at": moment(wait), "says": in_words(wait, now)}
    return WaitView(**fields)


def line_view(line: LogLine, secrets: list[str]) -> LineView:
    return LineView(
        id=line.id,
        at=line.at,
        attempt=line.attempt,
        level=line.level,
        message=without_secrets(line.message, secrets),
    )


def worker_view(worker: Worker) -> WorkerView:
    """A live worker. The store removes dead workers from its lists."""
    return WorkerView(
        id=worker.id,
        host=worker.host,
        pid=worker.pid,
        state=worker.state,
        alive=True,
        slots=worker.slots,
        jobs_held=worker.jobs_held,
        kinds=list(worker.kinds) if worker.kinds is not None else None,
        version=worker.version,
        started_at=worker.started_at,
        last_seen=worker.last_seen,
    )


def token_view(token: Token) -> TokenView:
    return TokenView(
        id=token.id,
        name=token.name,
        scope=token.scope,  # type: ignore[arg-type]
        created_at=token.created_at,
        expires_at=token.expires_at,
    )

"""The data of a job: results, URLs, errors, hosts, logs, explanations. As JSON, or as JSON lines."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from silkline.api.answer_models import (
    Answer,
    ErrorPage,
    HostReport,
    LineView,
    ListPage,
    add_route,
    answered,
)
from silkline.api.downloads import Downloads, Pieces
from silkline.api.ledger_counts import LedgerCounts
from silkline.api.lists import (
    CHUNK,
    FIRST,
    Announce,
    Item,
    Read,
    chosen_from,
    chosen_lines,
    lines,
    none_is_large,
    page_of,
)
from silkline.api.problems import Problem
from silkline.api.views import (
    host_view,
    line_view,
    reason_views,
    wait_view,
)
from silkline.export.large_rows import LargeRow, announcement
from silkline.export.limited_reads import CHUNK_BYTES
from silkline.model.database import Database
from silkline.model.field_filter import MOST, BadCondition, Condition, read_condition
from silkline.model.ledger import Counts
from silkline.model.redaction import secrets_of
from silkline.store import jobs, logs, results, shards, urls
from silkline.store.backlinks import into
from silkline.store.explain import explain
from silkline.store.job_view import JobView, job_view, waits_of
from silkline.store.url_view import (
    ErrorView,
    Explanation,
    ResultView,
    UrlState,
    UrlView,
    error_view,
    explanation,
    first_sources,
    result_view,
    url_views,
)

JSONL = "application/x-ndjson"
LINKED_CHUNK = 1_000  # for URLs with the pages that link to them, since each chunk reads all links of the job
LINKED_BYTES = 4 << 20
Accept = Annotated[str, Header()]


class Cursored(BaseModel):
    """The query of a list. `format=jsonl`, or `Accept: application/x-ndjson`, gives all items, one per line."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(100, ge=1, le=1_000)
    cursor: int = Field(0, ge=0, lt=2**62, description="`next_cursor` of the page before.")
    format: Literal["json", "jsonl"] | None = None


class ResultQuery(Cursored):
    content: bool = Field(True, description="False leaves the text of the page out; title, links and other facts stay.")
    where: list[str] = Field(
        default_factory=list,
        max_length=MOST,
        description="Only results with such a field: `price<20`, `stock=true`, `name~lamp`, `sku`, `!sku`.",
    )


class UrlQuery(Cursored):
    state: UrlState | None = None


class ErrorQuery(Cursored):
    reason: str | None = Field(None, max_length=200, pattern=r"^[\w .:()/-]+$")
    state: Literal["failed", "skipped"] = "failed"


class LogQuery(Cursored):
    level: Literal["debug", "info", "warning", "error", "critical"] | None = Field(
        None, description="This level and higher ones."
    )
    q: str = Field("", max_length=200, description="Part of the message.")


class ExplainQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: str = Field(max_length=8192)
    content: bool = Field(False, description="True includes the text of the page in the result.")


class LedgerRoutes:
    def __init__(self, database: Database, ledger_counts: LedgerCounts, downloads: Downloads) -> None:
        self._database = database
        self._downloads = downloads
        self._ledger_counts = ledger_counts
        self.router = APIRouter(prefix="/v1/jobs/{id}", tags=["results and ledger"])
        self._add("results", self.results, "Results of a job")
        self._add("urls", self.urls, "Every URL of a job, with its state and reason")
        self._add("errors", self.errors, "URLs that failed or were skipped, and why")
        self._add("logs", self.logs, "Log lines of a job, also while it runs")
        waits = "Hosts of a job, and why the crawl waits for them"
        add_route(self.router, "GET", "/hosts", self.hosts, waits, "not-found")
        parts = "Shards of a crawl over many machines, each with its machine and its counts"
        add_route(self.router, "GET", "/shards", self.shards, parts, "not-found")
        found = "State of one URL, and how the crawl found it"
        add_route(self.router, "GET", "/explain", self.explain, found, "not-found")

    def _add(self, name: str, handler: Any, summary: str) -> None:
        responses = answered(handler, "not-found", "too-many", "too-many-downloads")
        responses[200]["content"] = {JSONL: {"schema": {"type": "string"}, "example": '{"id": 1}\n{"id": 2}\n'}}
        self.router.add_api_route(
            f"/{name}", handler, methods=["GET"], summary=summary, response_model=None, responses=responses
        )

    def results(
        self, request: Request, id: str, query: Annotated[ResultQuery, Query()], accept: Accept = ""
    ) -> Answer[ListPage[ResultView]] | StreamingResponse:
        """In the order in which they were stored, so a client that follows a crawl gets every result.

        With `where`, a page may have few items or none: there are more while `next_cursor` is not null.
        """
        job = jobs.outline(self._database, id)
        conditions = conditions_of(query.where)

        def read(after: int, wanted: int) -> list[tuple[int, ResultView]]:
            found = results.page(self._database, job.id, after=after, wanted=wanted)
            return [(each.id, result_view(each, content=query.content)) for each in found]

        def announce(after: int) -> LargeRow | None:
            return announcement(results.next_length(self._database, job.id, after=after))

        if wants_lines(query, accept) and conditions:
            return self._download(request, chosen_lines(read, query.cursor, conditions, announce=announce))
        if wants_lines(query, accept):
            return self._lines(request, read, query, announce=announce)
        if conditions:
            return Answer(ListPage(*chosen_from(read, query.cursor, query.limit, conditions)))
        return Answer(ListPage(*page_of(read, query.cursor, query.limit)))

    def urls(
        self, request: Request, id: str, query: Annotated[UrlQuery, Query()], accept: Accept = ""
    ) -> Answer[ListPage[UrlView]] | StreamingResponse:
        """In the order of discovery, each with the first page that links to it."""
        job = jobs.outline(self._database, id)

        def read(after: int, wanted: int) -> list[tuple[int, UrlView]]:
            found = urls.page(self._database, job.id, after=after, wanted=wanted, state=query.state)
            return [(shown.id, shown) for shown in url_views(self._database, job.id, found)]

        if wants_lines(query, accept):
            return self._lines(request, read, query)
        return Answer(ListPage(*page_of(read, query.cursor, query.limit)))

    def errors(
        self, request: Request, id: str, query: Annotated[ErrorQuery, Query()], accept: Accept = ""
    ) -> Answer[ErrorPage] | StreamingResponse:
        """The number of URLs for each reason, and the URLs, each with the pages that link to it."""
        job = jobs.outline(self._database, id)

        def read(after: int, wanted: int) -> list[tuple[int, ErrorView]]:
            found = urls.failures(
                self._database, job.id, state=query.state, reason=query.reason, after=after, wanted=wanted
            )
            links, sources = into(self._database, job.id, found), first_sources(self._database, job.id, found)
            return [(url.id, error_view(url, sources, links[url.id])) for url in found]

        if wants_lines(query, accept):
            return self._lines(request, read, query, LINKED_CHUNK, LINKED_CHUNK, LINKED_BYTES)
        items, cursor = page_of(read, query.cursor, query.limit, LINKED_CHUNK, LINKED_CHUNK)
        return Answer(ErrorPage(reason_views(self._ledger_counts.get(urls.reasons, job)), items, cursor))

    def hosts(self, id: str) -> Answer[HostReport]:
        """Each host has its own pace. The longest wait comes first. The counts may be a few seconds old."""
        job = jobs.outline(self._database, id)
        waits, now = waits_of(job, urls.counts(self._database, id)), self._database.now()
        items = [host_view(row) for row in self._ledger_counts.get(urls.hosts, job)]
        return Answer(HostReport([wait_view(wait, now) for wait in waits], items))

    def shards(self, id: str) -> Answer[ListPage[JobView]]:
        """In order. Empty for a job that has no shards."""
        found, now = shards.of(self._database, jobs.outline(self._database, id).id), self._database.now()
        counts = urls.counts_of(self._database, [shard.id for shard in found])
        return Answer(ListPage([job_view(shard, counts.get(shard.id, Counts()), now) for shard in found], None))

    def logs(
        self, request: Request, id: str, query: Annotated[LogQuery, Query()], accept: Accept = ""
    ) -> Answer[ListPage[LineView]] | StreamingResponse:
        """Oldest first. `level` is the lowest level to show."""
        job = jobs.outline(self._database, id)
        secrets, levels = secrets_of(job.payload), levels_from(query.level)

        def read(after: int, wanted: int) -> list[tuple[int, LineView]]:
            found = logs.search(self._database, job.id, levels=levels, text=query.q, after=after, wanted=wanted)
            return [(line.id, line_view(line, secrets)) for line in found]

        if wants_lines(query, accept):
            return self._lines(request, read, query)
        return Answer(ListPage(*page_of(read, query.cursor, query.limit)))

    def explain(self, id: str, query: Annotated[ExplainQuery, Query()]) -> Answer[Explanation]:
        """404 when the crawl has not seen the URL."""
        found = explain(self._database, jobs.outline(self._database, id).id, query.url)
        return Answer(explanation(self._database, found, content=query.content))

    def _lines(
        self,
        request: Request,
        read: Read[Item],
        query: Cursored,
        first: int = FIRST,
        most: int = CHUNK,
        limit: int = CHUNK_BYTES,
        announce: Announce = none_is_large,
    ) -> StreamingResponse:
        return self._download(request, lines(read, query.cursor, first, most, limit, announce))

    def _download(self, request: Request, pieces: Pieces) -> StreamingResponse:
        def whole() -> Pieces:
            yield from pieces
            jobs.outline(self._database, request.path_params["id"])  # without the job, the list is not complete

        return self._downloads.answer(request.scope, whole(), JSONL)


def levels_from(lowest: str | None) -> list[str]:
    """A level and all higher levels. An empty list means all levels."""
    order = ["debug", "info", "warning", "error", "critical"]
    return order[order.index(lowest) :] if lowest else []


def wants_lines(query: Cursored, accept: str) -> bool:
    return query.format == "jsonl" or (query.format is None and JSONL in accept)


def conditions_of(where: list[str]) -> list[Condition]:
    try:
        return [read_condition(text) for text in where]
    except BadCondition as error:
        raise Problem("invalid", f"where: {error}") from error

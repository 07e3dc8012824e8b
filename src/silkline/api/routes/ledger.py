"""What a job brought and what became of each URL: results, URLs, errors, logs, explanations. JSON, or JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from silkline.api import explain, shapes
from silkline.api.secrecy import secrets_of
from silkline.api.shapes import problems
from silkline.api.tallies import Tallies
from silkline.api.views import (
    answer,
    line_view,
    links_in_view,
    reason_views,
    result_view,
    to_json,
    url_view,
    wait_view,
    waits_of,
)
from silkline.model.job import Job
from silkline.store import jobs, logs, results, urls
from silkline.store.backlinks import into
from silkline.store.database import Database
from silkline.store.urls import Url

JSONL = "application/x-ndjson"
PAGE_BYTES = 8 << 20  # a page of results ends early when it gets larger than this
CHUNK = 20
LINKED_CHUNK = 1_000  # of URLs with the pages that lead to them, since each chunk reads all the links of the job
Accept = Annotated[str, Header()]
Read = Callable[[int, int], list[tuple[int, dict[str, Any]]]]


class Cursored(BaseModel):
    """How a list is asked for. `format=jsonl`, or `Accept: application/x-ndjson`, gives all of it, a line for each."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(100, ge=1, le=1_000)
    cursor: int = Field(0, ge=0, lt=2**62, description="`next_cursor` of the page before.")
    format: Literal["json", "jsonl"] | None = None


class ResultQuery(Cursored):
    content: bool = Field(True, description="False leaves the text of the page out; title, links and other facts stay.")


class UrlQuery(Cursored):
    state: shapes.UrlState | None = None


class ErrorQuery(Cursored):
    reason: str | None = Field(None, pattern=r"^[\w .:()/-]{1,200}$")
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
    def __init__(self, database: Database, tallies: Tallies) -> None:
        self._database = database
        self._tallies = tallies
        self.router = APIRouter(prefix="/v1/jobs/{id}", tags=["results and ledger"])
        self._add("results", self.results, shapes.ListPage[shapes.ResultShape], "Results of a job")
        self._add("urls", self.urls, shapes.ListPage[shapes.UrlShape], "Every URL of a job, with its state and reason")
        self._add("errors", self.errors, shapes.Errors, "URLs that failed or were skipped, and why")
        self._add("logs", self.logs, shapes.ListPage[shapes.LineShape], "Log lines of a job, also while it runs")
        self.router.add_api_route(
            "/hosts",
            self.hosts,
            methods=["GET"],
            summary="Hosts of a job, and why the crawl waits for them",
            responses={200: {"model": shapes.HostReportShape}, **problems("not-found")},
        )
        self.router.add_api_route(
            "/explain",
            self.explain,
            methods=["GET"],
            summary="State of one URL, and how the crawl found it",
            responses={200: {"model": shapes.Explanation}, **problems("not-found")},
        )

    def _add(self, name: str, handler: Any, shape: Any, summary: str) -> None:
        content = {JSONL: {"schema": {"type": "string"}, "example": '{"id": 1}\n{"id": 2}\n'}}
        responses = {200: {"model": shape, "content": content}, **problems("not-found")}
        self.router.add_api_route(f"/{name}", handler, methods=["GET"], summary=summary, responses=responses)

    def results(self, id: str, query: Annotated[ResultQuery, Query()], accept: Accept = "") -> Response:
        """In the order in which they were stored, so a client that follows a crawl gets every result."""
        job = jobs.get(self._database, id)

        def read(after: int, wanted: int) -> list[tuple[int, dict[str, Any]]]:
            found = results.page(self._database, job.id, after=after, wanted=wanted)
            return [(each.id, result_view(each, content=query.content)) for each in found]

        return listing(read, query, accept)

    def urls(self, id: str, query: Annotated[UrlQuery, Query()], accept: Accept = "") -> Response:
        """In the order of discovery, each with the first page that links to it."""
        job = jobs.get(self._database, id)

        def read(after: int, wanted: int) -> list[tuple[int, dict[str, Any]]]:
            return self._url_views(
                job, urls.page(self._database, job.id, after=after, wanted=wanted, state=query.state)
            )

        return listing(read, query, accept)

    def errors(self, id: str, query: Annotated[ErrorQuery, Query()], accept: Accept = "") -> Response:
        """The number of URLs for each reason, and the URLs, each with the pages that link to it."""
        job = jobs.get(self._database, id)

        def read(after: int, wanted: int) -> list[tuple[int, dict[str, Any]]]:
            found = urls.failures(
                self._database, job.id, state=query.state, reason=query.reason, after=after, wanted=wanted
            )
            links = into(self._database, job.id, found)
            views = self._url_views(job, found)
            return [(id, {**view, "links_in": links_in_view(links[id])}) for id, view in views]

        reasons = reason_views(self._tallies.get(urls.reasons, job))
        return listing(read, query, accept, chunk=LINKED_CHUNK, reasons=reasons)

    def hosts(self, id: str) -> Response:
        """Each host has its own pace. The longest wait comes first. The counts may be a few seconds old."""
        job = jobs.get(self._database, id)
        waits, now = waits_of(job, urls.counts(self._database, id)), self._database.now()
        items = self._tallies.get(urls.hosts, job)
        return answer({"waiting": [wait_view(wait, now) for wait in waits], "items": items})

    def logs(self, id: str, query: Annotated[LogQuery, Query()], accept: Accept = "") -> Response:
        """Oldest first. `level` is the lowest level to show."""
        job = jobs.get(self._database, id)
        secrets, levels = secrets_of(job.payload), levels_from(query.level)

        def read(after: int, wanted: int) -> list[tuple[int, dict[str, Any]]]:
            found = logs.search(self._database, job.id, levels=levels, text=query.q, after=after, wanted=wanted)
            return [(line.id, line_view(line, secrets)) for line in found]

        return listing(read, query, accept)

    def explain(self, id: str, query: Annotated[ExplainQuery, Query()]) -> Response:
        """404 when the crawl has not seen the URL."""
        return answer(explain.explain(self._database, jobs.get(self._database, id), query.url, content=query.content))

    def _url_views(self, job: Job, found: list[Url]) -> list[tuple[int, dict[str, Any]]]:
        sources = urls.by_ids(self._database, job.id, [url.found_on for url in found if url.found_on is not None])
        return [(url.id, url_view(url, sources)) for url in found]


def levels_from(lowest: str | None) -> list[str]:
    """A level and those above it; none named means all."""
    order = ["debug", "info", "warning", "error", "critical"]
    return order[order.index(lowest) :] if lowest else []


def listing(read: Read, query: Cursored, accept: str, *, chunk: int = CHUNK, **more: Any) -> Response:
    """One page as JSON, or everything after the cursor as JSON lines."""
    if query.format == "jsonl" or (query.format is None and JSONL in accept):
        return StreamingResponse(_lines(read, query.cursor, chunk), media_type=JSONL)
    items, cursor = page_of(read, query.cursor, query.limit, chunk)
    return answer({**more, "items": items, "next_cursor": cursor})


def page_of(read: Read, after: int, wanted: int, most: int = CHUNK) -> tuple[list[dict[str, Any]], str | None]:
    """Up to `wanted` items, fewer when they are large; `most` are read at once."""
    items: list[dict[str, Any]] = []
    size = 0
    while True:
        chunk = read(after, min(most, wanted - len(items)) + 1)
        for place, (id, item) in enumerate(chunk):
            if len(items) == wanted or size > PAGE_BYTES:
                return items, str(after)
            if place == most:
                break
            items.append(item)
            size += len(to_json(item))
            after = id
        else:
            return items, None


def _lines(read: Read, after: int, most: int) -> Iterator[bytes]:
    """Everything, a chunk in memory at a time."""
    while chunk := read(after, most):
        after = chunk[-1][0]
        yield b"".join(to_json(item) + b"\n" for _, item in chunk)

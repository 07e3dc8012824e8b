"""Iterates over the results of a job, with a filter and in limited memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import merge
from typing import Any, Final, Protocol

from silkline.errors import UsageError
from silkline.export.failed_urls import ledger
from silkline.export.large_rows import LargeRow, announcement
from silkline.export.limited_reads import limited_reads
from silkline.model.database import Database
from silkline.model.field_filter import BadCondition, Condition, has_all, read_condition
from silkline.model.ledger import FAILED, SKIPPED
from silkline.model.pattern import BadPattern, UrlPattern
from silkline.model.result_fields import DATA, METADATA, mended
from silkline.store import jobs, results
from silkline.store.results import Result

FIRST: Final = 8
MOST: Final = 100
_SIZE_OF_VALUE: Final = 60
_CONTENT: Final = ("markdown", "text", "transcript", "html")


class Writer(Protocol):
    """Writes results in one format."""

    def write(self, result: Result) -> bool:
        """Write a result. False: it has no place in this format, such as a failed page in a sitemap."""
        ...

    def close(self) -> None:
        """Complete the file after the last result."""
        ...


@dataclass(frozen=True, slots=True)
class Filter:
    """Which results are wanted; an empty filter means all."""

    state: str | None = None
    statuses: tuple[str, ...] = ()
    match: str | None = None
    where: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for status in self.statuses:
            if not re.fullmatch(r"[1-5](\d\d|xx)", status, re.IGNORECASE):
                raise UsageError(f"--status {status!r} is not an HTTP status; examples: 200, or 4xx for 400 to 499")
        pattern_of(self.match)
        conditions_of(self.where)

    @property
    def asks_ledger(self) -> bool:
        """Whether URLs without a result are wanted: failed URLs of a crawl are only in the ledger."""
        return self.state != "done" and not self.where and (self.state == "failed" or bool(self.statuses))

    def wants(self, result: Result) -> bool:
        if self.state is not None and (self.state == "done") != result.success:
            return False
        if self.state == "failed" and result.metadata.get("skipped"):
            return False
        if self.statuses and not self._status(result.metadata.get("http_status")):
            return False
        if self.where and not has_all(conditions_of(self.where), result.data):
            return False
        pattern = pattern_of(self.match)
        return pattern is None or any(pattern.found_in(url) for url in (result.final_url, result.original_url) if url)

    def _status(self, status: object) -> bool:
        return any(
            str(status) == each or (each.lower().endswith("xx") and str(status)[:1] == each[0])
            for each in self.statuses
        )


@lru_cache(maxsize=4)
def pattern_of(match: str | None) -> UrlPattern | None:
    """The compiled pattern of `--match`; None: all URLs."""
    if match is None:
        return None
    try:
        return UrlPattern(match)
    except BadPattern as error:
        raise UsageError(f"--match {match[:80]!r} {error}") from error


@lru_cache(maxsize=4)
def conditions_of(where: tuple[str, ...]) -> list[Condition]:
    """The conditions of `--where`."""
    try:
        return [read_condition(text) for text in where]
    except BadCondition as error:
        raise UsageError(f"--where {error}") from error


def stream(database: Database, job_id: str, wanted: Filter, *, after: int = 0) -> Iterator[Result]:
    """The wanted results in order of discovery, and with some filters also URLs without a result."""
    yield from filter(_is_result, announced(database, job_id, wanted, after=after))


def announced(database: Database, job_id: str, wanted: Filter, *, after: int = 0) -> Iterator[Result | LargeRow]:
    """The same, with an announcement before each large result. Nothing here keeps a result that was taken."""
    if not wanted.asks_ledger:
        found = announced_results(database, job_id, after)
        yield from filter(lambda each: isinstance(each, LargeRow) or wanted.wants(each), found)
        return
    last = 0
    stored, others = stored_results(database, job_id, after), _without_page(database, job_id, after)
    both = merge(stored, others, key=lambda each: each.url_id)
    for result in both:  # if two have the same id, the stored one comes first
        if result.url_id != last and wanted.wants(result):
            yield result
        last = result.url_id


def _without_page(database: Database, job_id: str, after: int) -> Iterator[Result]:
    """URLs of the ledger that failed, or had a response that is not a page, in the form of results."""
    job = jobs.outline(database, job_id)
    moment = job.finished_at or job.updated_at
    for url in ledger(database, job_id, after=after):
        if url.state == FAILED or (url.state == SKIPPED and url.http_status is not None):
            about = {"http_status": url.http_status, "error": url.reason, "detail": url.detail, "depth": url.depth}
            metadata = {name: value for name, value in about.items() if value is not None}
            skipped = {"skipped": True} if url.state == SKIPPED else {}
            yield Result(0, job_id, url.id, url.url, url.url, {}, False, {**metadata, **skipped}, moment)


def stored_results(database: Database, job_id: str, after: int = 0) -> Iterator[Result]:
    """Results in order of discovery. If pages are large, fewer rows are read at a time."""
    yield from filter(_is_result, announced_results(database, job_id, after))


def _is_result(row: Result | LargeRow) -> bool:
    return isinstance(row, Result)


def announced_results(database: Database, job_id: str, after: int = 0) -> Iterator[Result | LargeRow]:
    """The same, with an announcement before each large result."""

    def read(after: int, wanted: int) -> list[tuple[int, Result | LargeRow]]:
        found = results.page_by_discovery(database, job_id, after=after, wanted=wanted)
        return [(result.url_id, result) for result in found]

    def announce(after: int) -> LargeRow | None:
        return announcement(results.next_length_by_discovery(database, job_id, after=after))

    large: LargeRow | None = None
    for chunk in limited_reads(read, _row_size, after=after, first=FIRST, most=MOST, announce=announce):
        chunk.reverse()
        while chunk:  # what is taken is not kept here
            if isinstance(chunk[-1], LargeRow):
                large = chunk[-1]
                yield chunk.pop()
                continue
            yield _taken(chunk)
            if large is not None:
                large.is_dropped()  # whoever took the row asks for the next one
                large = None


def _taken(chunk: list[Result | LargeRow]) -> Result:
    row = chunk.pop()
    assert isinstance(row, Result)  # noqa: S101 - for the type checker
    return with_right_types(row)


def _row_size(row: Result | LargeRow) -> int:
    return content_size(row) if isinstance(row, Result) else 0


def with_right_types(result: Result) -> Result:
    """Correct the types of fields: old results and those of plug-ins must not break an export."""
    data, metadata = mended(result.data, DATA), mended(result.metadata, METADATA)
    if data is result.data and metadata is result.metadata:
        return result
    return replace(result, data=data, metadata=metadata)


def content_of(result: Result) -> str:
    """The text of a page, in the format in which it was stored."""
    name = _content_name(result)
    return str(result.data[name]) if name else ""


def further_data(result: Result) -> dict[str, Any]:
    """The fields of `data` without the text of the page."""
    return {name: value for name, value in result.data.items() if name != _content_name(result)}


def _content_name(result: Result) -> str:
    return next((name for name in _CONTENT if isinstance(result.data.get(name), str) and result.data[name]), "")


def content_size(result: Result) -> int:
    """The approximate size of a result in memory. Not recursive: a plug-in may store deep data."""
    size = 1000
    left: list[Any] = [result.data]
    while left:
        value = left.pop()
        size += size_of_text(value) if isinstance(value, str) else _SIZE_OF_VALUE
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return size


def size_of_text(text: str) -> int:
    """The bytes of a text in memory: one emoji makes all its characters four times as large."""
    return len(text) if text.isascii() else sys.getsizeof(text)

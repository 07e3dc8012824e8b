"""The results of a job, one after the other, as many at once as memory can bear; and which of them are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from silkline.errors import UsageError
from silkline.model.pattern import BadPattern, UrlPattern
from silkline.store import results
from silkline.store.database import Database
from silkline.store.results import Result

FEWEST: Final = 20
MOST: Final = 500
CHUNK_SIZE: Final = 4 << 20  # characters of content, roughly, that one read should bring


class Writer(Protocol):
    """One form of export."""

    def write(self, result: Result) -> None: ...

    def close(self) -> None:
        """Everything has been written: finish the file."""
        ...


@dataclass(frozen=True, slots=True)
class Filter:
    """Which results are wanted; empty: all."""

    state: str | None = None
    statuses: tuple[str, ...] = ()
    match: str | None = None

    def __post_init__(self) -> None:
        for status in self.statuses:
            if not re.fullmatch(r"[1-5](\d\d|xx)", status):
                raise UsageError(f"--status {status!r} is no HTTP status; write 200, or 4xx for all of them")
        pattern_of(self.match)

    def wants(self, result: Result) -> bool:
        if self.state is not None and (self.state == "done") != result.success:
            return False
        if self.statuses and not self._status(result.metadata.get("http_status")):
            return False
        pattern = pattern_of(self.match)
        return pattern is None or any(pattern.found_in(url) for url in (result.final_url, result.original_url) if url)

    def _status(self, status: object) -> bool:
        return any(
            str(status) == each or (each.endswith("xx") and str(status)[:1] == each[0]) for each in self.statuses
        )


@lru_cache(maxsize=4)
def pattern_of(match: str | None) -> UrlPattern | None:
    """What `--match` asks for; None: everything."""
    if match is None:
        return None
    try:
        return UrlPattern(match)
    except BadPattern as error:
        raise UsageError(f"--match {match[:80]!r} {error}") from error


def stream(database: Database, job_id: str, wanted: Filter, *, after: int = 0) -> Iterator[Result]:
    """The wanted results in the order of discovery. Reads few rows at once where pages are large."""
    chunk = FEWEST
    while found := results.page_by_discovery(database, job_id, after=after, wanted=chunk):
        yield from (result for result in found if wanted.wants(result))
        after = found[-1].url_id
        size = sum(content_size(result) for result in found)
        if size > CHUNK_SIZE:
            chunk = max(FEWEST, chunk // 2)
        elif size * 2 < CHUNK_SIZE:
            chunk = min(MOST, chunk * 2)


def content_of(result: Result) -> str:
    """The text of a page, in whatever form it was stored."""
    return str(result.data.get("markdown") or result.data.get("text") or result.data.get("transcript") or "")


def content_size(result: Result) -> int:
    return sum(len(value) for value in result.data.values() if isinstance(value, str)) + 1000

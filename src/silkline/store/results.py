"""Reads the results of jobs. Only `store.urls.record` writes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, Final

from silkline.model.database import Database
from silkline.store.shard_members import from_cursor, horizon, member_of, members
from silkline.store.text import UNREADABLE

# A plug-in may have written NaN or Infinity, which are not JSON: our own answers must not contain them.
_read = json.JSONDecoder(parse_constant=lambda _: None).decode
READ_BYTES: Final = 8 << 20
"""The length of the results that are read at once. Decoding them holds up every other thread of the process."""


@dataclass(frozen=True, slots=True)
class Result:
    """One row of `crawl_results`, with the names of the exports and the API."""

    id: int
    job_id: str
    url_id: int
    original_url: str | None
    final_url: str
    data: dict[str, Any]
    success: bool
    metadata: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Timing:
    """The part of a result that charts need."""

    url_id: int
    metadata: dict[str, Any]
    created_at: datetime


def _from_row(row: dict[str, Any]) -> Result:
    return Result(
        **{
            **row,
            "data": _object(row["data"]),
            "metadata": _object(row["metadata"]),
            "success": bool(row["success"]),
        }
    )


def _object(text: str) -> dict[str, Any]:
    """The JSON of a column. A plug-in may have stored another value than an object, and every reader expects one.

    Text that is no JSON becomes an object that says so: one row must not make a list, an export or the cache fail.
    """
    try:
        value = _read(text)
    except (ValueError, RecursionError) as error:
        return {UNREADABLE: f"what is stored is not valid JSON: {error}"[:200]}
    return value if isinstance(value, dict) else {"value": value}


def page(database: Database, job_id: str, *, after: int = 0, wanted: int = 100) -> list[Result]:
    """Results of a job after the cursor `id`, in the order in which they were stored, so a reader gets every result.

    Fewer than wanted if they are large. After the last result, there are none.
    """
    several = members(database, job_id)
    limit = horizon(database, job_id) if several != [job_id] else None
    found = [
        _from_row(row)
        for member, fitting in _fitting(database, "results.sizes", several, after, wanted).items()
        for row in database.rows("results.page", job_id=member, after=after, wanted=fitting)
    ]
    if limit is not None:
        found = [result for result in found if result.id <= limit.results]
    return sorted(found, key=attrgetter("id"))


def _fitting(database: Database, statement: str, several: Sequence[str], after: int, wanted: int) -> Counter[str]:
    """How many of the next rows of each job are read at once: together few enough bytes, but at least one row."""
    if wanted == 1 and len(several) == 1:
        return Counter(several)
    sizes = [
        (row["id"], member, row["size"])
        for member in several
        for row in database.rows(statement, job_id=member, after=after, wanted=wanted)
    ]
    fitting: Counter[str] = Counter()
    left = READ_BYTES
    for _, member, size in sorted(sizes)[:wanted]:
        left -= size
        if left < 0 and fitting:
            break
        fitting[member] += 1
    return fitting


def newest(database: Database, job_id: str, *, wanted: int = 300) -> list[Timing]:
    """The time and the metadata of the latest results, without their content."""
    several = members(database, job_id)
    found = [row for member in several for row in database.rows("results.newest", job_id=member, wanted=wanted)]
    if len(several) > 1:
        found = sorted(found, key=itemgetter("created_at"), reverse=True)[:wanted]
    return [Timing(row["url_id"], _object(row["metadata"]), row["created_at"]) for row in found]


def page_by_discovery(database: Database, job_id: str, *, after: int = 0, wanted: int = 100) -> list[Result]:
    """Results after the cursor `url_id`, in the order of discovery of their URLs: the home page comes first.

    Fewer than wanted if they are large, or if the next ones are those of another shard. After the last result, none.
    """
    for member in from_cursor(members(database, job_id), after):
        fitting = _fitting(database, "results.sizes_by_discovery", [member], after, wanted)[member]
        rows = database.rows("results.page_by_discovery", job_id=member, after=after, wanted=fitting) if fitting else []
        if rows:
            return [_from_row(row) for row in rows]
    return []


def next_length(database: Database, job_id: str, *, after: int) -> int:
    """The length of the next result that `page` reads; 0 if there is none.

    SQLite counts characters, PostgreSQL bytes.
    """
    sizes = [
        (row["id"], row["size"])
        for member in members(database, job_id)
        for row in database.rows("results.sizes", job_id=member, after=after, wanted=1)
    ]
    return min(sizes)[1] if sizes else 0


def next_length_by_discovery(database: Database, job_id: str, *, after: int) -> int:
    """The same for `page_by_discovery`."""
    for member in from_cursor(members(database, job_id), after):
        for row in database.rows("results.sizes_by_discovery", job_id=member, after=after, wanted=1):
            return int(row["size"])
    return 0


def every(database: Database, job_id: str, *, chunk: int = 500) -> Iterator[Result]:
    """All results of a job, in the order of discovery of their URLs, in constant memory."""
    after = 0
    while found := page_by_discovery(database, job_id, after=after, wanted=chunk):
        yield from found
        after = found[-1].url_id


def by_url_id(database: Database, job_id: str, url_id: int) -> Result | None:
    found = database.rows("results.by_url_id", job_id=member_of(database, job_id, url_id), url_id=url_id)
    return _from_row(found[0]) if found else None


def cached(database: Database, url_key: int, since: datetime) -> Result | None:
    """The newest successful result since a time, for a requested URL or a URL after redirects. None if it cannot be
    read."""
    found = database.rows("results.cached", url_key=url_key, since=since, yes=True)
    result = _from_row(found[0]) if found else None
    return None if result is None or UNREADABLE in (*result.data, *result.metadata) else result


def count(database: Database, job_id: str) -> int:
    return sum(int(database.rows("results.count", job_id=member)[0]["results"]) for member in members(database, job_id))

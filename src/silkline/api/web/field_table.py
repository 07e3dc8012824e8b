"""The fields of a job as a table: one row for each page, or for each row of a page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from silkline.export.field_columns import columns_of
from silkline.model.database import Database
from silkline.model.field_counts import field_counts_in
from silkline.model.field_filter import BadCondition, Condition, has_all, read_condition
from silkline.model.job import Job
from silkline.portions import portions_of
from silkline.store import results, urls
from silkline.store.results import Result

FIELD_DATA: Final = ("fields", "rows", "field_errors")
ROWS: Final = 100
LOOKED_AT: Final = 2_000
"""Results that one request reads at most."""
LOOKING: Final = 1.0
"""Seconds that one request looks for rows. It shows what it has, and where to go on."""
MOST_OF_PAGE: Final = 1_000
"""Rows of one page that the table shows. A page may have 100,000, which no browser shows."""
MOST_NAMES: Final = 100
"""Columns of the table of one page. Each of its rows may have other names."""
MOST_CHARACTERS: Final = 1_000_000
"""After so many characters a table gets no further row."""
LONGEST_VALUE: Final = 300
"""Characters of a value that are kept for the table. The templates show fewer, with a mark that there are more."""
LONGEST_ERROR: Final = 1_000
_CHUNK: Final = 100


def field_table(
    database: Database, job: Job, after: int, text: str, clock: Callable[[], float] = time.monotonic
) -> dict[str, Any]:
    """The rows after a cursor. `text` is one condition, as in `results --where`."""
    give_up = clock() + LOOKING
    columns = columns_of(database, job.id)
    condition, problem = _condition(text)
    rows: list[dict[str, Any]] = []
    size = 0
    cursor: int | None = after
    for _ in range(0, LOOKED_AT, _CHUNK):
        found = results.page_by_discovery(database, job.id, after=cursor or 0, wanted=_CHUNK)
        for result in found:
            cursor = result.url_id
            more = _rows(result, columns, condition)
            rows += more
            size += sum(_size(row["values"]) for row in more)
            if len(rows) >= ROWS or size >= MOST_CHARACTERS or clock() >= give_up:
                break
        if len(rows) >= ROWS or size >= MOST_CHARACTERS or clock() >= give_up:
            break
        if not found:
            cursor = None
            break
    return {
        "field_columns": [column.name for column in columns.columns],
        "field_counts": field_counts_in(urls.counts(database, job.id).live),
        "rows": rows,
        "next": cursor,
        "problem": problem,
    }


def _rows(result: Result, columns: Any, condition: list[Condition]) -> list[dict[str, Any]]:
    if not any(name in result.data for name in ("fields", "rows")) or not has_all(condition, result.data):
        return []
    parts = result.data.get("rows") if columns.rows else [result.data.get("fields")]
    fitting = [part for part in parts if has_all(condition, {"fields": part})] if isinstance(parts, list) else []
    shown = {"rows": fitting[:MOST_OF_PAGE]} if columns.rows else {"fields": next(iter(fitting), None)}
    values = columns.values_of(replace(result, data=shown)) if fitting else []
    names = [column.name for column in columns.columns]
    shown_rows = _first((row[name] for name in names) for row in values)
    return [{"id": result.url_id, "url": result.final_url, "values": row} for row in shown_rows]


def _first(rows: Iterable[Iterable[Any]]) -> list[list[str]]:
    """The texts of the first rows, until they are too many or too long together."""
    texts = ([shown_value(value) for value in row] for row in rows)
    return next(portions_of(texts, MOST_OF_PAGE, _size, MOST_CHARACTERS), [])


def _size(row: list[str]) -> int:
    return sum(map(len, row))


def _condition(text: str) -> tuple[list[Condition], str]:
    try:
        return ([read_condition(text)] if text else []), ""
    except BadCondition as error:
        return [], str(error)


def fields_of_page(result: Result | None) -> dict[str, Any]:
    """The fields of one page, for its own view."""
    data = result.data if result is not None else {}
    rows = data.get("rows") if isinstance(data.get("rows"), list) else [data.get("fields")]
    tables = [row for row in rows or () if isinstance(row, dict)]
    names = list(dict.fromkeys(name for row in tables[:ROWS] for name in row))
    shown = names[:MOST_NAMES]
    shown_rows = _first([row.get(name) for name in shown] for row in tables[:ROWS]) if names else []
    errors = data.get("field_errors")
    return {
        "field_names": shown,
        "field_rows": shown_rows,
        "more_fields": len(names) - len(shown),
        "more_rows": len(tables) - len(shown_rows) if names else 0,
        "field_errors": [_error(each) for each in errors[:ROWS] if isinstance(each, dict)]
        if isinstance(errors, list)
        else [],
    }


def _error(error: dict[str, Any]) -> str:
    row = f", row {error['row']}" if error.get("row") else ""
    raw = f": {error['raw']}" if error.get("raw") else ""
    return f"{error.get('field') or 'all fields'}{row}: {error.get('error')}{raw}"[: LONGEST_ERROR + 1]


def shown_value(value: Any) -> str:
    """A value as text. It is cut, because a view holds thousands of them."""
    return _text(value)[: LONGEST_VALUE + 1]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

"""The columns of the fields that a job names, for tables: their names, their types, and the values of a result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from silkline.model.database import Database
from silkline.model.fields import CURRENCY
from silkline.store import jobs
from silkline.store.results import Result

ROW: Final = "row"
OWN_DATA: Final = frozenset({"fields", "rows"})
"""The parts of `data` that are in these columns."""
_RESERVED: Final = frozenset({ROW, "data", "metadata", "field_errors"})
_PLAIN: Final[dict[str, tuple[type, ...]]] = {"number": (int, float), "boolean": (bool,), "text": (str,)}
_LARGEST_EXACT: Final = 2**53
"""Whole numbers up to this one are exact in a column of floats; Parquet refuses larger ones."""
_KINDS: Final = {"price": "number", "url": "text"}


class Column(NamedTuple):
    """`kind` is text, number, boolean or date. `many`: the values are lists."""

    name: str
    field: str
    kind: str
    many: bool


class FieldColumns:
    """`rows`: a result has several rows, numbered in the column `row`."""

    def __init__(self, fields: Mapping[str, Mapping[str, Any]], *, rows: bool, taken: Collection[str] = ()) -> None:
        self.rows = rows
        self.columns = list(_columns(fields, taken))

    def __bool__(self) -> bool:
        return bool(self.columns)

    def values_of(self, result: Result) -> Iterator[dict[str, Any]]:
        """The values of each row of a result, by the name of the column. A page without rows has one that is empty.

        One at a time: a row of a few bytes in a page has a value here for each column.
        """
        if not self.rows:
            yield self._values(result.data.get("fields"))
            return
        found = result.data.get("rows")
        rows = found if isinstance(found, list) else []
        for number, row in enumerate(rows, start=1):
            yield {ROW: number, **self._values(row)}
        if not rows:
            yield {ROW: None, **self._values(None)}

    def _values(self, row: Any) -> dict[str, Any]:
        values = row if isinstance(row, Mapping) else {}
        return {column.name: _value(column, values.get(column.field)) for column in self.columns}


def columns_of(database: Database, job_id: str, taken: Collection[str] = ()) -> FieldColumns:
    """The columns of a job, from its spec. Columns with a name that is `taken` get a prefix."""
    payload = jobs.outline(database, job_id).payload  # `fields` and `each` are limited, so an outline has them
    fields = payload.get("fields")
    return FieldColumns(fields if isinstance(fields, Mapping) else {}, rows=bool(payload.get("each")), taken=taken)


def _columns(fields: Mapping[str, Mapping[str, Any]], taken: Collection[str]) -> Iterator[Column]:
    for name, field in fields.items():
        kind, many = field.get("type", "text"), bool(field.get("many"))
        yield Column(_free(name, taken), name, _KINDS.get(kind, kind), many)
        if kind == "price":
            yield Column(_free(name + CURRENCY, taken), name + CURRENCY, "text", many)


def _free(name: str, taken: Collection[str]) -> str:
    return f"fields.{name}" if name in taken or name in _RESERVED else name


def _value(column: Column, value: Any) -> Any:
    """A value of the right type, or None. The currencies of a list may be null."""
    if column.many:
        values = value if isinstance(value, list) else []
        return [_one(column.kind, each) for each in values]
    return _one(column.kind, value)


def _one(kind: str, value: Any) -> Any:
    if kind == "date":
        return _date(value)
    if isinstance(value, bool) and kind != "boolean":
        return None
    if kind == "number" and isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return _as_float(value)
    return value if isinstance(value, _PLAIN[kind]) else None


def _as_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _date(value: Any) -> datetime | None:
    """A date without a zone is in UTC, because a column has one zone."""
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):  # in UTC it may be before the year 1
        return None

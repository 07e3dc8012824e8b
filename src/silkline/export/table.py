"""CSV, for spreadsheets: one row per result, and no cell that a spreadsheet would use as a formula.

That is true for a spreadsheet that splits at commas. One that splits at `;` makes other cells of a text such as `a;=1`,
and no way of writing it helps: quotes count only at the start of a cell.

The fields of `data` get columns after the fixed ones, in the order in which they first appear. So the results are read
twice: for the names of the columns, and for the rows. Nothing is kept between, neither in memory nor on a disk.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, BinaryIO, Final

from silkline.export.field_columns import OWN_DATA, ROW, FieldColumns
from silkline.export.rows import content_of, further_data
from silkline.store.results import Result

COLUMNS: Final = (
    *("url_id", "original_url", "final_url", "success", "http_status", "error", "detail", "title", "description"),
    *("language", "content_type", "bytes", "seconds", "redirected_from", "created_at", "content"),
)
MOST_COLUMNS: Final = 1_000
LONGEST_NAME: Final = 1_000
LONGEST_REPEATED: Final = 500
PIECE: Final = 1 << 20
_LOOK: Final = 10_000
REST: Final = "data"  # the column for all further fields
_FROM_DATA: Final = frozenset({"title", "description", "language"})
NO_FIELDS: Final = FieldColumns({}, rows=False)
_SIGNS: Final = frozenset("=+-@")
_BREAKS: Final = ("\t", "\r", "\n")
_FILLERS: Final = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters of Unicode that have no shape."""


class DataColumns:
    """The columns for the fields of `data`, in the order of their first result. `REST` is the last of very many."""

    def __init__(self, fields: FieldColumns | None = None) -> None:
        self._left_out = _FROM_DATA | OWN_DATA if fields else _FROM_DATA
        self._names: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def see(self, result: Result) -> None:
        """Add the columns of a result."""
        for name in self._fields_of(result):
            new = name not in self._names
            has_room = len(self._names) < MOST_COLUMNS and len(name) <= LONGEST_NAME
            if new and (has_room or REST not in self._names):
                self._names[name if has_room else REST] = None

    def values_of(self, result: Result) -> dict[str, Any] | None:
        """The values of a result by column; None if it has a field without a column.

        Such a result was stored after the columns were known.
        """
        values = self._fields_of(result)
        rest = {name: values.pop(name) for name in [*values] if name not in self._names}
        if rest:
            if REST not in self._names:
                return None
            values[REST] = {**({REST: values[REST]} if REST in values else {}), **rest}
        return values

    def _fields_of(self, result: Result) -> dict[str, Any]:
        return {name: value for name, value in further_data(result).items() if name not in self._left_out}


def columns_in(results: Iterable[Result], fields: FieldColumns | None = None) -> DataColumns:
    """The columns for the `data` of all these results."""
    columns = DataColumns(fields)
    for result in results:
        columns.see(result)
    return columns


class Table:
    """Writes CSV (RFC 4180) in UTF-8. `columns`: those of all results, from a first look at them."""

    def __init__(
        self, stream: BinaryIO, fields: FieldColumns | None = None, columns: DataColumns | None = None
    ) -> None:
        self._stream = stream
        self._fields = fields if fields is not None else NO_FIELDS
        self._field_names = [column.name for column in self._fields.columns]
        if self._fields.rows:
            self._field_names.insert(0, ROW)
        self._columns = columns if columns is not None else DataColumns(fields)
        self._stream.write(line_of([*COLUMNS, *self._field_names, *map(self._column, self._columns)]))

    def write(self, result: Result) -> bool:
        for _ in self.parts(result):
            pass
        return True

    def parts(self, result: Result) -> Iterator[None]:
        """Write a result, a row at a time: a page can have very many rows."""
        further = self._columns.values_of(result)
        if further is None:
            return
        fixed = row_of(result)
        for values in self._fields.values_of(result) if self._fields else iter(({},)):
            own = (_cell(values.get(name)) for name in self._field_names)
            self._stream.write(line_of([*fixed.values(), *own, *(_cell(further.get(name)) for name in self._columns)]))
            yield
            fixed, further = repeated(fixed), {}

    def close(self) -> None:
        self._stream.flush()

    def _column(self, name: str) -> str:
        """The header of a data column; it gets a prefix if another column has the same name."""
        return f"data.{name}" if name in COLUMNS or name in self._field_names else name


def line_of(cells: Iterable[Any]) -> bytes:
    """A line of CSV. Nothing else of the process runs during a long call, so a long cell is written in pieces."""
    safe = [harmless(cell) for cell in cells]
    if any(_is_long(cell) for cell in safe):
        return b",".join(_long(cell) if _is_long(cell) else _written(["", cell])[1:-2] for cell in safe) + b"\r\n"
    return _written(safe)


def _written(cells: list[Any]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().encode("utf-8", "replace")


def _is_long(cell: Any) -> bool:
    return isinstance(cell, str) and len(cell) > PIECE


def _long(cell: str) -> bytes:
    parts = (cell[begin : begin + PIECE] for begin in range(0, len(cell), PIECE))
    if not any(sign in cell for sign in ',"\r\n'):
        return b"".join(part.encode("utf-8", "replace") for part in parts)
    return b"".join((b'"', *(part.replace('"', '""').encode("utf-8", "replace") for part in parts), b'"'))


def _cell(value: Any) -> Any:
    """Nested values become JSON, times ISO 8601; other values are not changed."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=datetime.isoformat)
    return value


def row_of(result: Result) -> dict[str, Any]:
    """The columns of a result."""
    metadata, data = result.metadata, result.data
    return {
        "url_id": result.url_id,
        "original_url": result.original_url,
        "final_url": result.final_url,
        "success": result.success,
        "http_status": metadata.get("http_status"),
        "error": metadata.get("error"),
        "detail": metadata.get("detail"),
        "title": data.get("title"),
        "description": data.get("description"),
        "language": data.get("language"),
        "content_type": metadata.get("content_type"),
        "bytes": metadata.get("bytes"),
        "seconds": metadata.get("seconds"),
        "redirected_from": _spaced(metadata.get("redirected_from")),
        "created_at": result.created_at.isoformat(),
        "content": content_of(result),
    }


def repeated(row: dict[str, Any]) -> dict[str, Any]:
    """The columns in the further rows of a page. Long values are only in its first row: a page can have many rows."""
    return {
        name: None if name == "content" or (isinstance(value, str) and len(value) > LONGEST_REPEATED) else value
        for name, value in row.items()
    }


def _spaced(value: Any) -> str | None:
    """A list of URLs as one cell. External workers may have stored a value of another type."""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or None
    return str(value) if value else None


def harmless(value: Any) -> Any:
    """A safe cell for a spreadsheet: text that looks like a formula gets an apostrophe before it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if isinstance(value, dict | list | tuple):
        value = json.dumps(value, ensure_ascii=False)
    text = str(value).replace("\x00", "")
    return "'" + text if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Whether the first visible character starts a formula. Some spreadsheets treat full-width signs like others."""
    if text.lstrip(" \u00a0").startswith(_BREAKS):
        return True
    return unicodedata.normalize("NFKC", _first_visible(text)) in _SIGNS


def _first_visible(text: str) -> str:
    if text and not _is_invisible(text[0]):
        return text[0]
    for begin in range(0, len(text), _LOOK):
        part = text[begin : begin + _LOOK]
        visible = {sign for sign in set(part) if not _is_invisible(sign)}  # a long part has few different signs
        if visible:
            return next(sign for sign in part if sign in visible)
    return ""


def _is_invisible(sign: str) -> bool:
    """Spaces, control characters, marks without a letter, and what else a spreadsheet may drop or not show."""
    return unicodedata.category(sign)[0] in "CZM" or sign in _FILLERS

"""CSV, for spreadsheets: one row per result, and no cell that a spreadsheet would use as a formula.

That is true for a spreadsheet that splits at commas. One that splits at `;` makes other cells of a text such as `a;=1`,
and no way of writing it helps: quotes count only at the start of a cell.

The fields of `data` get columns after the fixed ones, in the order in which they first appear. The header is known
only at the end, so rows are kept in a temporary file until then.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import tempfile
import unicodedata
from collections.abc import Iterator
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
LONGEST_REPEATED: Final = 500
REST: Final = "data"  # the column for all further fields
_FROM_DATA: Final = frozenset({"title", "description", "language"})
NO_FIELDS: Final = FieldColumns({}, rows=False)
_IN_MEMORY: Final = 8 << 20
_ROW: Final = struct.Struct("<II")  # the number of its data columns, and its length
_SIGNS: Final = frozenset("=+-@")
_BREAKS: Final = ("\t", "\r", "\n")
_FILLERS: Final = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters of Unicode that have no shape."""


class Table:
    """Writes CSV (RFC 4180) in UTF-8."""

    def __init__(self, stream: BinaryIO, fields: FieldColumns | None = None) -> None:
        self._stream = stream
        self._fields = fields if fields is not None else NO_FIELDS
        self._field_names = [column.name for column in self._fields.columns]
        if self._fields.rows:
            self._field_names.insert(0, ROW)
        self._rows = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed in `ending`
        self._columns: dict[str, None] = {}

    def write(self, result: Result) -> bool:
        left_out = _FROM_DATA | OWN_DATA if self._fields else _FROM_DATA
        further = {name: value for name, value in further_data(result).items() if name not in left_out}
        rest: dict[str, Any] = {}
        for name, value in further.items():
            if name in self._columns or len(self._columns) < MOST_COLUMNS:
                self._columns.setdefault(name)
            else:
                rest[name] = value
        if rest:
            self._columns.setdefault(REST)
            further[REST] = {**({REST: further[REST]} if REST in further else {}), **rest}
        fixed = row_of(result)
        for values in self._fields.values_of(result) if self._fields else iter(({},)):
            own = (_cell(values.get(name)) for name in self._field_names)
            line = _line([*fixed.values(), *own, *(_cell(further.get(name)) for name in self._columns)])
            self._rows.write(_ROW.pack(len(self._columns), len(line)) + line)
            fixed, further = repeated(fixed), {}
        return True

    def close(self) -> None:
        for _ in self.ending():
            pass

    def ending(self) -> Iterator[None]:
        """Write the header and then the rows, one at a time: a download sends each part before the next is written."""
        if self._rows.closed:
            return
        total = len(self._columns)
        with self._rows as rows:
            self._stream.write(_line([*COLUMNS, *self._field_names, *map(self._column, self._columns)]))
            rows.seek(0)
            while head := rows.read(_ROW.size):
                known, length = _ROW.unpack(head)
                line = rows.read(length)
                self._stream.write(line if known == total else line[:-2] + b"," * (total - known) + b"\r\n")
                yield
        self._stream.flush()

    def _column(self, name: str) -> str:
        """The header of a data column; it gets a prefix if another column has the same name."""
        return f"data.{name}" if name in COLUMNS or name in self._field_names else name


def _line(cells: list[Any]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow([harmless(cell) for cell in cells])
    return text.getvalue().encode("utf-8", "replace")


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
    first = next((sign for sign in text if not _is_invisible(sign)), "")
    return unicodedata.normalize("NFKC", first) in _SIGNS


def _is_invisible(sign: str) -> bool:
    """Spaces, control characters, marks without a letter, and what else a spreadsheet may drop or not show."""
    return unicodedata.category(sign)[0] in "CZM" or sign in _FILLERS

"""CSV, for spreadsheets: one row for each result, and no cell that a spreadsheet would take for a formula."""

from __future__ import annotations

import csv
import io
from typing import Any, BinaryIO, Final

from silkline.export.rows import content_of
from silkline.store.results import Result

COLUMNS: Final = (
    *("url_id", "original_url", "final_url", "success", "http_status", "error", "detail", "title", "description"),
    *("language", "content_type", "bytes", "seconds", "redirected_from", "created_at", "content"),
)
# The last four are the full-width forms, which some spreadsheets read as the plain ones.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class Table:
    """Rows of CSV, as RFC 4180 has them, in UTF-8."""

    def __init__(self, stream: BinaryIO) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        self._rows = csv.writer(self._text)
        self._rows.writerow(COLUMNS)

    def write(self, result: Result) -> None:
        self._rows.writerow([harmless(value) for value in row_of(result).values()])

    def close(self) -> None:
        self._text.flush()
        self._text.detach()


def row_of(result: Result) -> dict[str, Any]:
    """A result in columns."""
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
        "redirected_from": " ".join(metadata.get("redirected_from") or ()) or None,
        "created_at": result.created_at.isoformat(),
        "content": content_of(result),
    }


def harmless(value: Any) -> Any:
    """A cell as it may stand in a spreadsheet: text that would be taken for a formula gets an apostrophe before it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    text = str(value).replace("\x00", "")
    return "'" + text if text.lstrip(" \u00a0").startswith(_FORMULA) else text

"""Parquet, for data tools: the columns of the table with their types, those of the fields that the job names, and all
of `data` and `metadata` as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO, Final

from silkline.errors import UsageError
from silkline.export.field_columns import ROW, Column, FieldColumns
from silkline.export.rows import content_size
from silkline.export.table import NO_FIELDS, repeated, row_of
from silkline.store.results import Result

GROUP_ROWS: Final = 5_000
GROUP_SIZE: Final = 8 << 20


class Parquet:
    """Collects rows into groups of a few megabytes; only one group is in memory."""

    def __init__(self, stream: BinaryIO, fields: FieldColumns | None = None) -> None:
        self._arrow = pyarrow = load()
        text, whole = pyarrow.string(), pyarrow.int64()
        kinds = {
            **dict.fromkeys(("url_id", "http_status", "bytes"), whole),
            "success": pyarrow.bool_(),
            "seconds": pyarrow.float64(),
            "created_at": pyarrow.timestamp("us", tz="UTC"),
        }
        fixed = [(name, kinds.get(name, text)) for name in row_of(_EXAMPLE)]
        self._fields = fields if fields is not None else NO_FIELDS
        own = [(ROW, whole)] if self._fields.rows else []
        own += [(column.name, _type_of(pyarrow, column)) for column in self._fields.columns]
        self._schema = pyarrow.schema([*fixed, *own, ("data", text), ("metadata", text)])
        self._writer = pyarrow.parquet.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._size = 0

    def write(self, result: Result) -> bool:
        for _ in self.parts(result):
            pass
        return True

    def parts(self, result: Result) -> Iterator[None]:
        """Write a result, a group of rows at a time: a page can have very many rows."""
        row = row_of(result)
        row["created_at"] = result.created_at
        row["http_status"] = _whole(row["http_status"])
        row["bytes"] = _whole(row["bytes"])
        row["seconds"] = float(row["seconds"]) if isinstance(row["seconds"], int | float) else None
        for name in ("error", "detail", "title", "description", "language", "content_type"):
            row[name] = None if row[name] is None else str(row[name])
        row["data"] = json.dumps(result.data, ensure_ascii=False)
        row["metadata"] = json.dumps(result.metadata, ensure_ascii=False)
        for values in self._fields.values_of(result):
            self._rows.append({**row, **values})
            row = {**repeated(row), "data": None, "metadata": None}
            if len(self._rows) >= GROUP_ROWS:
                self._flush()
                yield
        self._size += 2 * content_size(result)
        if self._size >= GROUP_SIZE:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
            self._rows, self._size = [], 0


def load() -> Any:
    """Import the library, or say how to install it."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'silkline[parquet]'") from error
    return pyarrow


def _type_of(pyarrow: Any, column: Column) -> Any:
    kinds = {"number": pyarrow.float64(), "boolean": pyarrow.bool_(), "date": pyarrow.timestamp("us", tz="UTC")}
    kind = kinds.get(column.kind, pyarrow.string())
    return pyarrow.list_(kind) if column.many else kind


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


_EXAMPLE: Final = Result(0, "", 0, None, "", {}, True, {}, datetime.min)

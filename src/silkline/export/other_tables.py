"""The tables of a job that do not have one row for each result: its links, and the chunks of its pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from silkline.export.large_rows import LargeRow
from silkline.export.row_files import Columns
from silkline.export.rows import Filter
from silkline.model.database import Database


def table_of(
    database: Database, job_id: str, form: str, wanted: Filter, *, chunk_size: int
) -> tuple[Iterator[Any], Columns]:
    """The rows and the columns of a table. The links of a job are not filtered."""
    rows, columns = announced_table(database, job_id, form, wanted, chunk_size=chunk_size)
    return filter(_is_row, rows), columns


def _is_row(row: Any) -> bool:
    return not isinstance(row, LargeRow)


def announced_table(
    database: Database, job_id: str, form: str, wanted: Filter, *, chunk_size: int
) -> tuple[Iterator[Any], Columns]:
    """The same, with an announcement before each large result."""
    if form == "links":
        from silkline.export import links

        return links.links_of(database, job_id), links.COLUMNS
    from silkline.export import chunks

    return chunks.chunk_rows(database, job_id, wanted, chunk_size), chunks.COLUMNS

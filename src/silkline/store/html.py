"""Stores and reads the HTML that jobs keep, as it was compressed. A checkpoint writes it together with the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from silkline.model.database import Database, Transaction
from silkline.model.kept_html import NewDictionary, NewHtml
from silkline.store.shard_members import family, from_cursor, member_of, members


def append(
    transaction: Transaction, job_id: str, pages: Sequence[NewHtml], dictionaries: Sequence[NewDictionary]
) -> None:
    """Write the pages of one checkpoint, and the dictionaries that they and later pages need."""
    for each in dictionaries:
        transaction.rows("html.append_dictionary", job_id=job_id, id=each.id, data=each.data)
    if pages:
        transaction.many("html.append", NewHtml._fields, pages, job_id=job_id)


def page(database: Database, job_id: str, *, after: int = 0, wanted: int = 50) -> list[NewHtml]:
    """Pages after a cursor, in the order of discovery of their URLs."""
    found: list[NewHtml] = []
    for member in from_cursor(members(database, job_id), after):
        rows = database.rows("html.page", job_id=member, after=after, wanted=wanted - len(found))
        found += [_from_row(row) for row in rows]
        if len(found) >= wanted:
            break
    return found


def by_url_id(database: Database, job_id: str, url_id: int) -> NewHtml | None:
    found = database.rows("html.by_url_id", job_id=member_of(database, job_id, url_id), url_id=url_id)
    return _from_row(found[0]) if found else None


def dictionary(database: Database, job_id: str, id: int) -> bytes | None:
    several = family(database, job_id)
    found = [row for member in several for row in database.rows("html.dictionary", job_id=member, id=id)]
    return bytes(found[0]["data"]) if found else None


def _from_row(row: dict[str, Any]) -> NewHtml:
    return NewHtml(row["url_id"], row["dictionary"], row["size"], bytes(row["html"]))

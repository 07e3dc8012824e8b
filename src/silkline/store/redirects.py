"""The redirects that crawls saw. With them the cache finds a page by every URL that leads to it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from silkline.model.database import Database, Transaction

_COLUMNS = ("url_id", "target_key")


class Redirect(NamedTuple):
    """The job that saw the redirect, the ledger's id of the URL that redirects, and the key of its target."""

    job_id: str
    url_id: int
    target_key: int


def append(transaction: Transaction, job_id: str, seen: Iterable[tuple[int, str]], now: datetime) -> None:
    """Store redirects as part of a checkpoint: the ledger id of each URL, and its target."""
    moved = list(seen)
    if moved:
        from silkline.model.url import url_key  # here, because commands that only read do not need the URL parser

        rows = [(id, url_key(target)) for id, target in moved]
        transaction.many("redirects.append", _COLUMNS, rows, job_id=job_id, now=now)


def newest(database: Database, key: int, since: datetime) -> Redirect | None:
    """The last redirect of a URL since a time."""
    found = database.rows("redirects.newest", url_key=key, since=since)
    return Redirect(**found[0]) if found else None

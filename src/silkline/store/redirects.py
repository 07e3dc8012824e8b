"""Where URLs of crawls redirected to: with it the cache finds a page under the names that lead to it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from silkline.store.database import Database, Transaction

_COLUMNS = ("url_id", "target_key")


class Redirect(NamedTuple):
    """The job that saw it, and the key of the URL that it led to."""

    job_id: str
    target_key: int


def append(transaction: Transaction, job_id: str, seen: Iterable[tuple[int, str]], now: datetime) -> None:
    """Store redirects: the ledger id of each URL, and what it pointed at. Part of a checkpoint."""
    moved = list(seen)
    if moved:
        from silkline.model.url import url_key  # here, since commands that only read need no URL parser

        rows = [(id, url_key(target)) for id, target in moved]
        transaction.many("redirects.append", _COLUMNS, rows, job_id=job_id, now=now)


def newest(database: Database, key: int, since: datetime) -> Redirect | None:
    """The last redirect of a URL that was seen since a time."""
    found = database.rows("redirects.newest", url_key=key, since=since)
    return Redirect(**found[0]) if found else None

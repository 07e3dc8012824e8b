"""Removes jobs with all their data: results, ledger, links, logs, kept HTML and answers for idempotency keys."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from silkline.errors import Refused
from silkline.model.database import Database
from silkline.store.jobs import checked_id, outline

CHUNK: Final = 2_000
DATA_REMOVALS: Final = (
    *("idempotency.forget", "results.forget", "pages.forget", "count_history.forget"),
    *("urls.forget_keys", "urls.forget", "links.forget", "redirects.forget", "blames.forget"),
    *("html.forget", "html.forget_dictionaries"),
    "logs.forget",  # last, so that it finds a line whose transaction began before the job was gone
)
SHARD_REMOVALS: Final = ("shard_links.forget", "shards.forget_crawl", "shards.forget_shards", "shards.forget_cursors")


def finished_before(database: Database, before: datetime, wanted: int = 100) -> list[str]:
    return [row["id"] for row in database.rows("jobs.finished_before", before=before, wanted=wanted)]


def finished_beyond(database: Database, keep: int, wanted: int = 100) -> list[str]:
    return [row["id"] for row in database.rows("jobs.finished_beyond", keep=keep, wanted=wanted)]


def delete(database: Database, id: str, *, chunk: int = CHUNK) -> list[str]:
    """Remove a job and its shards with all their data, in transactions of bounded size. A live job is refused.

    The job itself goes first, so that nothing can start it again; what is left to remove is written down, so that
    `finish_deletions` goes on after a crash. Returns the ids of what was removed.
    """
    with database.transaction() as transaction:
        forgotten = transaction.rows("jobs.forget", id=checked_id(id))
        if not forgotten:
            raise Refused(f"job {id} is {outline(database, id).status}: cancel it first")
        ids = [id]
        if database.dialect == "postgres":
            ids = [*(row["id"] for row in transaction.rows("shards.forget", parent_id=id)), id]
        for each in ids:
            transaction.rows("jobs.mark_deleted", id=each)
    for each in ids:
        _delete_data(database, each, chunk)
    return ids


def finish_deletions(database: Database, *, chunk: int = CHUNK) -> list[str]:
    """Complete deletions that a crash interrupted. Returns the ids of the jobs."""
    ids = [row["id"] for row in database.rows("jobs.deleted")]
    for id in ids:
        _delete_data(database, id, chunk)
    return ids


def _delete_data(database: Database, id: str, chunk: int) -> None:
    for name in DATA_REMOVALS:
        # A row of links holds those of many pages, and the HTML of a page is large.
        some = chunk if name not in ("links.forget", "html.forget") else max(1, chunk // 100)
        while len(database.rows(name, job_id=id, wanted=some)) == some:
            pass
    with database.transaction() as transaction:
        for name in ("urls.forget_state", *(SHARD_REMOVALS if database.dialect == "postgres" else ())):
            transaction.rows(name, job_id=id)
        transaction.rows("jobs.unmark_deleted", id=id)

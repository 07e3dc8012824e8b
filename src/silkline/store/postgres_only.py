"""What SQLite cannot do, with the sentence that says so."""

from __future__ import annotations

from collections.abc import Sequence

from silkline.errors import UsageError
from silkline.model.database import Database
from silkline.model.job import NewJob


def check_shards(database: Database, jobs: Sequence[NewJob]) -> None:
    """Refuse a crawl in several shards on SQLite."""
    if database.dialect != "postgres" and any(
        job.kind == "site" and job.payload.get("shards") is not None for job in jobs
    ):
        raise UsageError(
            "shards need PostgreSQL: set SILKLINE_DATABASE_URL to a PostgreSQL database, or leave the shards out"
        )

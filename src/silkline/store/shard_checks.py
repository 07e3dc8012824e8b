"""What a crawl in several shards needs: PostgreSQL, and a spec that is short enough to be copied to each shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from silkline.errors import SpecError, UsageError
from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.store.text import to_json

MOST_COPIED: Final = 64 << 20
"""The bytes of the spec of a crawl, times its shards. One transaction stores all copies, for each start and retry."""


def check_shards(database: Database, jobs: Sequence[NewJob]) -> None:
    """Refuse crawls in several shards that cannot be stored."""
    sharded = [job for job in jobs if job.kind == "site" and job.payload.get("shards") is not None]
    if sharded and database.dialect != "postgres":
        raise UsageError(
            "shards need PostgreSQL: set SILKLINE_DATABASE_URL to a PostgreSQL database, or leave the shards out"
        )
    for job in sharded:
        _check_size(job)


def _check_size(job: NewJob) -> None:
    shards, size = int(job.payload["shards"]), _bytes(job.payload)
    if shards > 1 and shards * size > MOST_COPIED:
        longest = max(job.payload, key=lambda name: _bytes(job.payload[name]))
        raise SpecError(
            f"the spec has {size:,} bytes, and each shard gets a copy of it: with {shards} shards, it can have "
            f"{MOST_COPIED // shards:,} bytes. Ask for fewer shards, or shorten its longest field, {longest}"
        )


def _bytes(value: object) -> int:
    return len(to_json(value).encode())

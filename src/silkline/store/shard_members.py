"""The jobs whose ledgers and results make up a job: its shards, or the job itself.

Everything that reads a job for people asks here, so a crawl in several shards looks like one crawl. The ids of the
ledgers of shards follow each other, so a list over all shards is one list after the other, and an id names its shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from silkline.model.database import Database
from silkline.model.sharding import shard_of_id

LONGEST_UNSETTLED: Final = 10.0
"""If no worker has looked after a crawl for so many seconds, its horizon does not move any more."""


def members(database: Database, job_id: str) -> list[str]:
    """The shards of a job in order, or the job itself."""
    if database.dialect != "postgres":
        return [job_id]
    return [row["id"] for row in database.rows("shards.ids", parent_id=job_id)] or [job_id]


class Horizon(NamedTuple):
    """The largest ids of results and of log lines below which nothing is still to come."""

    results: int
    lines: int


def horizon(database: Database, parent_id: str) -> Horizon | None:
    """How far a reader that follows a crawl in shards may read. None: everything may be read."""
    since = database.now() - timedelta(seconds=LONGEST_UNSETTLED)
    found = database.rows("shards.horizon", id=parent_id, since=since)
    return Horizon(found[0]["horizon"], found[0]["log_horizon"]) if found else None


def family(database: Database, job_id: str) -> list[str]:
    """The same for a shard too: all shards of its crawl, because links lead from one to the other."""
    if database.dialect != "postgres":
        return [job_id]
    return [row["id"] for row in database.rows("shards.family", job_id=job_id)] or [job_id]


def member_of(database: Database, job_id: str, id: int) -> str:
    """The job whose ledger has this id."""
    found = family(database, job_id)
    return found[shard_of_id(id)] if 0 <= shard_of_id(id) < len(found) else job_id


def by_member(database: Database, job_id: str, ids: Iterable[int]) -> Iterator[tuple[str, list[int]]]:
    """These ids of a ledger, for each job that has some of them."""
    wanted = sorted(set(ids))
    found = family(database, job_id)
    if len(found) == 1:  # a job that reads the pages of shards again has their ids
        yield found[0], wanted
        return
    for shard in sorted({shard_of_id(id) for id in wanted}):
        if 0 <= shard < len(found):
            yield found[shard], [id for id in wanted if shard_of_id(id) == shard]


def from_cursor(members: Sequence[str], after: int) -> Iterator[str]:
    """The jobs that have ids after this one, in order."""
    yield from members[min(shard_of_id(max(after, 0)), len(members)) if len(members) > 1 else 0 :]

"""What workers do with the parents of crawls that span machines, in place of a runner: start their shards, and decide
how the crawl continues and ends. Any number of workers may do this at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.seed_ends import SEEDS, verdict
from silkline.model.sharding import Verdict
from silkline.store import shards, urls


def start(database: Database, job: Job) -> bool:
    """Start the shards of a claimed parent. False: the user wants something else by now, and the claim must end."""
    counts = urls.counts(database, job.id)
    if not (counts.done or counts.unchanged or counts.queued or counts.in_flight):
        for id in shards.ids_of(database, job.id):
            urls.requeue_failed_roots(database, id)
    return shards.open_shards(database, job)


def _why_seeds_failed(database: Database, ids: Sequence[str]) -> str | None:
    """Why a crawl that stored nothing has failed. None: it has not."""
    return verdict([end for id in ids for end in urls.root_ends(database, id) if end.found_via in SEEDS])


def decide(database: Database, id: str) -> Verdict | None:
    """Decide about one parent. None: another process does it now, or its shards are not at work."""
    return shards.settle(database, id, _why_seeds_failed)


def look(database: Database, interval: float) -> list[tuple[str, Verdict]]:
    """Decide about every parent that no other process decides about now, or did within the interval (s)."""
    found = ((id, decide(database, id)) for id in shards.parents(database, interval))
    return [(id, decided) for id, decided in found if decided is not None]

"""A crawl that spans machines: its parent, its shards, and every decision about them as a pure function. No I/O.

The parent is a job without a process. Each shard is a crawl of the hosts whose hash falls to it. The state of the whole
crawl is read in one snapshot of the database, and is conservative: what a process has only in memory comes from a URL
that is still queued in the ledger of its shard, or from links that are not taken in yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from silkline.model.job import WISH_BECOMES, Job, Status, Wish

OWNER: Final = "shards"
"""The `worker_id` of a running parent: it belongs to its shards, and no worker renews it."""
MOST_SHARDS: Final = 256
IDLE: Final = "idle"
"""The exit reason of a shard that gave its slot back because it has nothing to do now."""
SEEDS_FILE: Final = -1
"""The sender of links that come from a seeds file."""
FINISHED, OVER_LIMIT, OVER_DURATION, BROKEN = "finished", "over_limit", "over_duration", "broken"
_ID_BITS: Final = 40
_LIVE: Final = frozenset({Status.QUEUED, Status.RUNNING})


def ids_before(shard: int) -> int:
    """The ids of the ledger of a shard come after this number, so that an id names one URL of the whole crawl."""
    return shard << _ID_BITS


def shard_of_id(id: int) -> int:
    """The shard whose ledger has this id."""
    return id >> _ID_BITS


def is_parent(job: Job) -> bool:
    return job.kind == "site" and job.shard is None and job.payload.get("shards") is not None


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """The part of a checkpoint that only shards have.

    `sent`: (receiver, lowest depth, packed links). `taken`: (sender, number) of the last row taken in. `wanted`: how
    many more pages the shard would like to be allowed to store; negative: it returns what it has not used. `sweep`:
    remove the rows that it has taken in. `quiet`: the crawl ends, and the shard sends nothing more.
    """

    sent: Sequence[tuple[int, int, bytes]] = ()
    taken: Sequence[tuple[int, int]] = ()
    lowest: int | None = None
    wanted: int = 0
    sweep: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard, as the parent sees it. `inbox`: the lowest depth of links that it has not taken in; None: no such."""

    id: str
    shard: int
    status: Status
    idle: bool
    pending: int
    stored: int
    allowed: int
    lowest: int | None
    inbox: int | None
    settled: int = 0
    seeded: bool = True
    """Its seeds are in its ledger."""
    message: str | None = None

    @property
    def has_nothing(self) -> bool:
        return self.seeded and not self.pending and self.inbox is None


@dataclass(frozen=True, slots=True)
class ShardedCrawl:
    """The parent with all its shards, in one snapshot."""

    id: str
    desired: Wish
    shards: Sequence[Shard]
    limit: int | None
    depth: int | None
    max_duration: float | None
    remaining: int | None
    ending: str | None
    message: str | None
    seconds: float
    settled_at: datetime

    @property
    def level(self) -> int | None:
        """How deep all shards may go now. None: the crawl has no limit on depth, or nothing is left."""
        return level_of(self.shards) if self.depth is not None else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a sharded crawl: `status` ends or pauses the parent; `wake` are shards to start."""

    ending: str | None = None
    message: str | None = None
    status: Status | None = None
    reason: str = ""
    wake: tuple[str, ...] = ()
    reclaim: tuple[str, ...] = ()
    """Shards that hold pages of the limit and have nothing to fetch."""


def judge(crawl: ShardedCrawl) -> Verdict:
    """The one place that decides how a crawl over many machines continues and ends."""
    shards = crawl.shards
    statuses = {shard.status for shard in shards}
    if statuses == {Status.COMPLETED}:
        return Verdict(crawl.ending, status=Status.COMPLETED, reason=crawl.ending or FINISHED)
    if crawl.desired is not Wish.RUN:
        if not statuses & _LIVE:
            return Verdict(crawl.ending, status=WISH_BECOMES[crawl.desired], reason=WISH_BECOMES[crawl.desired].value)
        return Verdict(crawl.ending)
    ending = crawl.ending or _ending(crawl)
    failed = [shard for shard in shards if shard.status is Status.FAILED]
    if ending == BROKEN or (failed and not statuses & _LIVE):
        message = crawl.message or (_failure(failed[0]) if failed else None)
        over = not statuses & _LIVE
        return Verdict(ending, message, Status.FAILED if over else None, "shard failed" if failed else "seeds failed")
    asleep = [shard for shard in shards if _sleeps(shard)]
    if ending is not None:
        return Verdict(ending, wake=tuple(shard.id for shard in asleep))
    wake = tuple(shard.id for shard in asleep if _has_work(shard, crawl.remaining, crawl.level))
    return Verdict(wake=wake, reclaim=tuple(shard.id for shard in shards if _hoards(shard, crawl)))


@dataclass(frozen=True, slots=True)
class Load:
    """A worker: how many shards it holds, and how many jobs it could run beside them."""

    worker_id: str
    shards: int
    free: int


def gives_one(loads: Sequence[Load], waiting: int, worker_id: str) -> bool:
    """Whether this worker should release one shard, so that a worker with fewer shards gets it.

    Only the fullest worker does, only while no shard is on its way, and only if the other has fewer shards afterwards
    than it had itself: so shards never go in circles.
    """
    if waiting or not loads:
        return False
    fullest = max(loads, key=lambda load: (load.shards, load.worker_id))
    takers = [load for load in loads if load.free]
    fewest = min((load.shards for load in takers), default=None)
    return fullest.worker_id == worker_id and fewest is not None and fullest.shards - fewest >= 2


def level_of(shards: Sequence[Shard]) -> int | None:
    """The lowest depth at which anything is left to do in the whole crawl. None: nothing is left."""
    if not all(shard.seeded for shard in shards):
        return 0
    return min((depth for shard in shards for depth in (shard.lowest, shard.inbox) if depth is not None), default=None)


def grant(wanted: int, remaining: int, shards: int) -> int:
    """How many pages of the limit a shard gets: less and less, so that the last pages go where they can be used."""
    return min(wanted, remaining, max(1, remaining // (2 * shards)))


def _ending(crawl: ShardedCrawl) -> str | None:
    shards = crawl.shards
    if crawl.max_duration is not None and crawl.seconds >= crawl.max_duration:
        return OVER_DURATION
    if crawl.limit is not None and sum(shard.stored for shard in shards) >= crawl.limit:
        return OVER_LIMIT
    if all(shard.has_nothing for shard in shards):
        return FINISHED
    others = [shard for shard in shards if shard.status is not Status.FAILED]
    if len(others) < len(shards) and not any(_has_work(shard, crawl.remaining, None) for shard in others):
        return BROKEN
    return None


def _sleeps(shard: Shard) -> bool:
    return shard.status in (Status.PAUSED, Status.STOPPED) or (shard.status is Status.QUEUED and shard.idle)


def _has_work(shard: Shard, remaining: int | None, level: int | None) -> bool:
    if shard.inbox is not None or not shard.seeded:
        return True
    if not shard.pending or (remaining == 0 and shard.allowed <= shard.stored):
        return False
    return level is None or shard.lowest is None or shard.lowest <= level


def _hoards(shard: Shard, crawl: ShardedCrawl) -> bool:
    asleep = shard.status is not Status.RUNNING
    return crawl.remaining is not None and asleep and shard.has_nothing and shard.allowed > shard.stored


def _failure(shard: Shard) -> str:
    return f"shard {shard.shard} failed: {shard.message or 'it crashed too often'}"

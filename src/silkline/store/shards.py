"""The parents of crawls that span machines, and their shards: how they start, how a wish reaches them, how they end.

A parent has no process. The worker that claims it makes the shards and hands the parent over to them. From then on any
supervisor decides about it, in one transaction (`settle`); `model.sharding` has the rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from silkline.model.database import Database, Transaction
from silkline.model.ids import new_id
from silkline.model.job import ENDED, Job, Status, Wish
from silkline.model.sharding import BROKEN, IDLE, OWNER, Load, Shard, ShardedCrawl, Verdict, judge
from silkline.store import logs
from silkline.store.jobs import fence, from_row, outlines
from silkline.store.logs import NewLine
from silkline.store.shard_links import wake_shards
from silkline.store.shard_wishes import spread

LONGEST_STEP: Final = 5.0
"""Crawling time that one decision may add, in seconds: a fleet that was switched off did not crawl."""
Check = Callable[[Database, Sequence[str]], str | None]


def open_shards(database: Database, job: Job) -> bool:
    """Make the shards of a claimed parent, or let them continue, and hand it over to them.

    Returns False if the user wants something else by now. Safe to repeat: each shard is made once.
    """
    now, number = database.now(), int(job.payload["shards"])
    with database.transaction(durable=True) as transaction:
        fence(transaction, job)
        transaction.rows("shards.open", id=job.id, shards=number, remaining=job.payload.get("limit"), now=now)
        rows = [(new_id(now), shard) for shard in range(number)]
        transaction.many("shards.make", ("id", "shard"), rows, parent_id=job.id, now=now)
        transaction.rows("shards.describe", parent_id=job.id)
        handed = transaction.rows(
            "shards.hand_over", id=job.id, run_lease=job.run_lease, worker_id=job.worker_id, owner=OWNER, now=now
        )
        if handed:
            transaction.rows("shards.go_on", parent_id=job.id, now=now)
            line = f"attempt {job.attempt} started: the crawl runs in {number} shards"
            logs.append_in(transaction, [NewLine(job.id, job.attempt, "info", line, now)])
        else:
            _withdraw(transaction, job.id, now)
    database.wake_supervisors()
    return bool(handed)


def _withdraw(transaction: Transaction, parent_id: str, now: datetime) -> None:
    """The parent does not start after all: its new shards must not start either."""
    (parent,) = outlines(transaction, [parent_id])
    spread(transaction, parent_id, parent.desired, now)


def parents(database: Database, seconds: float) -> list[str]:
    """The parents with running shards that no supervisor has checked for so many seconds. SQLite has none."""
    if database.dialect != "postgres":
        return []
    since = database.now() - timedelta(seconds=seconds)
    return [row["id"] for row in database.rows("shards.parents", owner=OWNER, since=since)]


def settle(database: Database, id: str, check_seeds: Check) -> Verdict | None:
    """Decide about one parent, and carry the decision out. None: another process does it now, or it has ended.

    `check_seeds` says, for a crawl that stored nothing, why it has failed.
    """
    with database.transaction() as transaction:
        locked = transaction.rows("shards.lock", id=id, owner=OWNER)
        if not locked:
            return None
        now = database.now()
        crawl = _crawl(transaction, id, locked[0], now)
        verdict = judge(crawl)
        if verdict.ending and not crawl.ending and not any(shard.stored for shard in crawl.shards):
            problem = check_seeds(database, [shard.id for shard in crawl.shards])
            if problem is not None:
                verdict = Verdict(BROKEN, problem)
        _carry_out(transaction, crawl, verdict, locked[0]["run_lease"], now)
    if verdict.wake or verdict.ending:
        database.wake_supervisors()
    if (verdict.ending, crawl.level) != (crawl.ending, locked[0]["level"]):
        wake_shards(database, id)
    return verdict


def _crawl(transaction: Transaction, id: str, row: dict[str, Any], now: datetime) -> ShardedCrawl:
    found = transaction.rows("shards.snapshot", id=id)
    payload = json.loads(row["payload"])
    step = max(0.0, min(LONGEST_STEP, (now - row["settled_at"]).total_seconds()))
    running = any(each["status"] == Status.RUNNING for each in found)
    return ShardedCrawl(
        id=id,
        desired=Wish(row["desired"]),
        shards=[_shard(each, now) for each in found],
        limit=payload.get("limit"),
        depth=payload.get("depth"),
        max_duration=payload.get("max_duration"),
        remaining=row["remaining"],
        ending=row["ending"],
        message=row["message"],
        seconds=row["seconds"] + (step if running else 0.0),
        settled_at=row["settled_at"],
    )


def _shard(row: dict[str, Any], now: datetime) -> Shard:
    return Shard(
        id=row["id"],
        shard=row["shard"],
        status=Status(row["status"]),
        idle=row["exit_reason"] == IDLE and row["run_at"] > now,
        pending=row["pending"],
        stored=row["stored"],
        allowed=row["allowed"],
        lowest=row["lowest"],
        inbox=row["inbox"],
        settled=row["settled"],
        seeded=row["seeded"],
        message=row["error_message"],
    )


def _carry_out(transaction: Transaction, crawl: ShardedCrawl, verdict: Verdict, run_lease: int, now: datetime) -> None:
    """First the row of the parent, then the rows of jobs: the order in which checkpoints lock them too."""
    message = verdict.message or crawl.message
    transaction.rows(
        "shards.settle",
        id=crawl.id,
        ending=verdict.ending,
        message=message,
        level=crawl.level,
        settled=sum(shard.settled for shard in crawl.shards),
        seconds=crawl.seconds,
        now=now,
    )
    transaction.rows("shards.move_horizon", id=crawl.id)
    for job_id in verdict.reclaim:
        unused = int(transaction.rows("shard_links.unused", job_id=job_id)[0]["pages"])
        transaction.rows("shard_links.grant", parent_id=crawl.id, job_id=job_id, pages=-unused)
    if verdict.wake:
        transaction.rows("shards.wake", ids=list(verdict.wake), now=now)
    if crawl.desired is not Wish.RUN:
        spread(transaction, crawl.id, crawl.desired, now)  # a shard that was just made or claimed may have missed it
    elif verdict.ending == BROKEN:
        spread(transaction, crawl.id, Wish.STOP, now)
    if verdict.status is not None:
        _end(transaction, crawl, verdict, message, run_lease, now)


def _end(
    transaction: Transaction, crawl: ShardedCrawl, verdict: Verdict, message: str | None, run_lease: int, now: datetime
) -> None:
    status = verdict.status
    assert status is not None  # noqa: S101
    wish = Wish.RUN if status in (Status.COMPLETED, Status.FAILED) else crawl.desired
    ended = transaction.rows(
        "shards.end",
        id=crawl.id,
        status=status.value,
        desired=wish.value,
        reason=verdict.reason,
        message=message if status is Status.FAILED else None,
        finished_at=now if status in ENDED else None,
        run_lease=run_lease,
        owner=OWNER,
        seen=crawl.desired.value,
        now=now,
    )
    if ended:
        transaction.rows("shard_links.sweep_all", parent_id=crawl.id)
        line = f"all shards have ended: {verdict.reason}; the job is now {status}" + (f"\n{message}" if message else "")
        level = "error" if status is Status.FAILED else "info"
        logs.append_in(transaction, [NewLine(crawl.id, 0, level, line, now)])


def claim(database: Database, worker_id: str, host: str, parent_id: str, wanted: int) -> list[Job]:
    """Claim due shards of one parent, for a command that runs this crawl only. Returns their outlines."""
    found = database.rows(
        "shards.claim", parent_id=parent_id, worker_id=worker_id, host=host, wanted=wanted, now=database.now()
    )
    return [from_row(row) for row in found]


def ids_of(database: Database, parent_id: str) -> list[str]:
    """The ids of the shards of a parent, in order."""
    if database.dialect != "postgres":
        return []
    return [row["id"] for row in database.rows("shards.ids", parent_id=parent_id)]


def of(database: Database, parent_id: str) -> list[Job]:
    """The shards of a parent as outlines, in order: each has a copy of the spec, and there may be 256."""
    return outlines(database, ids_of(database, parent_id))


def loads(database: Database, stale_after: float) -> tuple[list[Load], int]:
    """The shards and free slots of every live worker that runs crawls, and how many shards wait for a worker."""
    now = database.now()
    rows = database.rows("shards.loads", now=now, since=now - timedelta(seconds=stale_after))
    found = [Load(row["id"], row["shards"], max(0, row["slots"] - row["held"])) for row in rows]
    return found, rows[0]["waiting"] if rows else 0

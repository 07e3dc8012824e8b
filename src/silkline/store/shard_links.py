"""Links between the shards of a crawl: a transactional outbox with cursors, and the shares of the limit.

A checkpoint of the sender writes one row for each receiver, with a number that rises. A checkpoint of the receiver
moves its cursor, at the earliest in the transaction that stores the URLs which the rows became. Both are fenced by the
lease. So each link arrives once, whichever process dies: a row whose URLs are stored, but whose cursor has not
moved, is read again, and the receiver already knows its URLs. `store.urls.record` calls `write`.

The number of a row is at least the time in microseconds. So if the database loses the commit of a row, no later row
gets its number: a receiver that has read the lost row would skip it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from silkline.errors import StoreError
from silkline.model.database import Database, Transaction
from silkline.model.job import Job
from silkline.model.sharding import SEEDS_FILE, ShardProgress, grant


class Arrived(NamedTuple):
    """One row of another shard."""

    sender: int
    number: int
    links: bytes


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a shard must know of the rest of the crawl.

    `allowed`: pages it may store; None: no limit. `remaining`: pages that no shard may store yet. `wanted`: another job
    waits for a slot. `level`: the lowest depth with something to do in the whole crawl. `settled`: its URLs that are
    not queued any more. `all_quiet`: no other shard will send anything.
    """

    ending: str | None
    allowed: int | None
    remaining: int | None
    wanted: bool
    level: int | None = None
    settled: int = 0
    all_quiet: bool = False


def write(transaction: Transaction, job: Job, progress: ShardProgress, now: datetime) -> None:
    """The part of a checkpoint that only shards have."""
    state: dict[str, Any] = {"lowest": progress.lowest, "quiet": progress.quiet}
    state |= {"sends": bool(progress.sent), "micros": int(now.timestamp() * 1e6)}
    number = transaction.rows("shard_links.advance", job_id=job.id, **state)[0]["sent"]
    if progress.sent:
        _send(transaction, str(job.parent_id), job.shard or 0, number, progress.sent)
    if progress.taken:
        senders, numbers = [list(column) for column in zip(*progress.taken, strict=True)]
        moved = transaction.rows("shard_links.take", **_receiver(job), senders=senders, numbers=numbers)
        if len(moved) != len(senders):
            raise StoreError(f"the cursors of job {job.id} are inconsistent: links were taken in twice")
    if progress.sweep:
        transaction.rows("shard_links.sweep", **_receiver(job))
    if progress.wanted:
        _share(transaction, job, progress.wanted)
    if transaction.rows("shard_links.overdrawn", job_id=job.id):
        raise StoreError(f"job {job.id} stored more pages than its share of the limit")


def wake_receivers(database: Database, job: Job, progress: ShardProgress) -> None:
    """After a checkpoint: wake the receivers of its links that have nothing to do."""
    receivers = [receiver for receiver, _, _ in progress.sent]
    if receivers:
        with suppress(StoreError):  # a lost wakeup costs one poll interval
            database.rows("shard_links.notify", parent_id=job.parent_id, receivers=receivers)


def wake_shards(database: Database, parent_id: str) -> None:
    """Wake all shards of a crawl: its end or its depth was decided."""
    with suppress(StoreError):
        database.rows("shard_links.notify_all", parent_id=parent_id)


def plant(database: Database, parent_id: str, number: int, links: Mapping[int, bytes]) -> None:
    """Links of a seeds file for each shard, with a number that rises."""
    with database.transaction(durable=True) as transaction:
        _send(transaction, parent_id, SEEDS_FILE, number, [(shard, 0, packed) for shard, packed in links.items()])


def cursors(database: Database, job: Job) -> dict[int, int]:
    """The number of the last row of each sender that was taken in."""
    return {row["sender"]: row["taken"] for row in database.rows("shard_links.cursors", **_receiver(job))}


def arrived(database: Database, job: Job, after: Mapping[int, int], *, most: int) -> list[Arrived]:
    """Rows for this shard after a number of each sender, those of one sender in their order."""
    senders, numbers = list(after), list(after.values())
    wanted: dict[str, Any] = {"senders": senders, "numbers": numbers, "wanted": most, "most": most}
    return [Arrived(**row) for row in database.rows("shard_links.arrived", **_receiver(job), **wanted)]


def outlook(database: Database, job: Job) -> Outlook:
    row = database.rows("shard_links.look", job_id=job.id, now=database.now())[0]
    return Outlook(**{**row, "allowed": None if row["remaining"] is None else row["allowed"]})


def _receiver(job: Job) -> dict[str, Any]:
    return {"parent_id": job.parent_id, "receiver": job.shard}


def _send(
    transaction: Transaction, parent_id: str, sender: int, number: int, rows: Sequence[tuple[int, int, bytes]]
) -> None:
    receivers, depths, links = [list(column) for column in zip(*rows, strict=True)]
    transaction.rows(
        "shard_links.send",
        parent_id=parent_id,
        sender=sender,
        number=number,
        receivers=receivers,
        depths=depths,
        links=links,
    )


def _share(transaction: Transaction, job: Job, wanted: int) -> None:
    """Take more pages of the limit, or return those that were not used."""
    left = transaction.rows("shard_links.hold", parent_id=job.parent_id)
    if not left:
        return
    if wanted > 0:
        pages = grant(wanted, left[0]["remaining"], left[0]["shards"])
    else:
        pages = -int(transaction.rows("shard_links.unused", job_id=job.id)[0]["pages"])
    if pages:
        transaction.rows("shard_links.grant", parent_id=job.parent_id, job_id=job.id, pages=pages)

"""Stores one job for each idempotency key: one transaction writes the key, the job and the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from silkline.model.database import Database, Transaction
from silkline.model.job import Job, NewJob
from silkline.store.jobs import enqueue_in
from silkline.store.shard_checks import check_shards

KEPT = timedelta(hours=24)
SWEPT = 100  # expired keys that are removed whenever a new key is stored


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to the first POST with a key, and a fingerprint of that request."""

    job_id: str
    fingerprint: str
    text: str
    fresh: bool


def enqueue_once(
    database: Database,
    job: NewJob,
    *,
    key: str,
    fingerprint: str,
    answer: Callable[[Job, bool], str],
    check: Callable[[Transaction, str], None] = lambda transaction, id: None,
) -> StoredAnswer:
    """Store the job under the key, or return the stored answer.

    `check` gets the id of an earlier job with the same dedupe key. If it raises, nothing is stored: the key stays free.
    """
    now = database.now()
    check_shards(database, [job])
    with database.transaction(durable=True) as transaction:
        if not transaction.rows("idempotency.claim", key=key, fingerprint=fingerprint, now=now):
            row = transaction.rows("idempotency.get", key=key)[0]
            return StoredAnswer(row["job_id"], row["fingerprint"], row["answer"], fresh=False)
        stored, fresh = enqueue_in(transaction, job, now)
        if not fresh:
            check(transaction, stored.id)
        text = answer(stored, fresh)
        transaction.rows("idempotency.answer", key=key, job_id=stored.id, answer=text)
        transaction.rows("idempotency.expire", before=now - KEPT, wanted=SWEPT)
    database.wake_supervisors()
    return StoredAnswer(stored.id, fingerprint, text, fresh=True)

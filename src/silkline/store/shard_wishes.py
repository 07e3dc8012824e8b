"""Passes the wish for a parent on to its shards, in the transaction that changes the parent."""

from __future__ import annotations

from datetime import datetime

from silkline.model.database import Transaction
from silkline.model.job import WISH_BECOMES, Status, Wish


def spread(transaction: Transaction, parent_id: str, desired: Wish, now: datetime) -> None:
    """Make the wish for a parent the wish for its shards. Those that do not run change their status at once."""
    status = WISH_BECOMES.get(desired, Status.QUEUED)
    transaction.rows("shards.spread", parent_id=parent_id, desired=desired.value, status=status.value, now=now)

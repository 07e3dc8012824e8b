"""What the processes of a machine committed, for metrics. The row of a process is written in the transaction that it
counts, so the sum over a machine equals what its processes added to the ledgers, whichever process died.

Each process has a row of its own, named after its meter, so that processes never wait for each other. A process
without a meter is not counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from silkline.metrics import process
from silkline.model.database import Database, Transaction

COLUMNS = ("discovered", "done", "unchanged", "failed", "skipped", "requeued", "bytes", "results", "checkpoints")


def add(transaction: Transaction, now: datetime, **counts: int) -> None:
    """Add to the row of this process. Counts that are not named are 0."""
    meter = process.meter_id()
    if meter is not None:
        values = {column: counts.get(column, 0) for column in COLUMNS}
        transaction.rows("checkpoint_counts.add", meter=meter, now=now, **values)


def total(database: Database, meters: Sequence[str]) -> dict[str, int]:
    """The sum over these meters."""
    row = database.rows("checkpoint_counts.sum", meters=json.dumps(list(meters)))[0]
    return {column: int(row[column]) for column in COLUMNS}


def forget(database: Database, before: datetime) -> None:
    """Remove the counts of data directories that were not used since this time."""
    database.rows("checkpoint_counts.forget", before=before)

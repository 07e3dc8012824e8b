"""Whether a stored job is the very request that somebody makes now. A dedupe key alone does not say that."""

from __future__ import annotations

import json

from silkline.model.database import Database, Transaction
from silkline.model.job import Job, NewJob
from silkline.store import jobs
from silkline.store.short_payload import payload_columns


def is_same_request(database: Database | Transaction, id: str, new: NewJob) -> bool:
    """Whether a stored job has this kind and this spec. Reads a whole long spec only if its outline is equal."""
    text, short = payload_columns(new.payload)
    found = jobs.outline(database, id)
    if not _equal(found, new, short or text):
        return False
    return not jobs.is_shortened(database, id) or _equal(jobs.get(database, id), new, text)


def _equal(found: Job, new: NewJob, payload: str) -> bool:
    return found.kind == new.kind and found.payload == json.loads(payload)

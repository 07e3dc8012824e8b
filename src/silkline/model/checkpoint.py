"""A checkpoint: the progress that an attempt stores in one transaction, and the counts of the ledger after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

QUEUED, DONE, UNCHANGED, FAILED, SKIPPED = "queued", "done", "unchanged", "failed", "skipped"
STATES = (QUEUED, DONE, UNCHANGED, FAILED, SKIPPED)
REDIRECTED = "redirected"


class PageLinks(NamedTuple):
    """What one page names: `keys` holds 8 bytes for each address, its `url_key` as a big-endian number."""

    url_id: int
    keys: bytes


class NewUrl(NamedTuple):
    """A URL the crawl discovered. `found_on` is the ledger id of the page that named it."""

    id: int
    url_key: int
    url: str
    host: str
    depth: int
    state: str = QUEUED
    reason: str | None = None
    detail: str | None = None
    found_on: int | None = None
    found_via: str = "seed"


class Settled(NamedTuple):
    """A queued URL that has an end, or, with the state `queued`, one more try behind it."""

    id: int
    state: str
    reason: str | None = None
    detail: str | None = None
    attempts: int = 1
    http_status: int | None = None


class NewResult(NamedTuple):
    """What one URL brought. `data` and `metadata` are JSON text."""

    url_id: int
    original_url: str | None
    original_key: int | None
    final_url: str
    final_key: int
    data: str
    success: bool
    metadata: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Progress since the last one. `seconds` is the crawling time it covers, `live` what is worth seeing now."""

    found: Sequence[NewUrl] = ()
    settled: Sequence[Settled] = ()
    results: Sequence[NewResult] = ()
    links: Sequence[PageLinks] = ()
    bytes: int = 0
    in_flight: int = 0
    seconds: float = 0.0
    live: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers that always add up: discovered = queued + in_flight + done + unchanged + failed + skipped."""

    discovered: int = 0
    queued: int = 0
    in_flight: int = 0
    done: int = 0
    unchanged: int = 0
    failed: int = 0
    skipped: int = 0
    bytes: int = 0
    checkpoints: int = 0
    seconds: float = 0.0
    updated_at: datetime | None = None
    live: dict[str, Any] = field(default_factory=dict)

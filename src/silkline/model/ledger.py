"""The types of the ledger: the URLs of a job, their states, a checkpoint and the counters. `store.urls` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, overload

from silkline.model.kept_html import NewDictionary, NewHtml
from silkline.model.sharding import ShardProgress

QUEUED, DONE, UNCHANGED, FAILED, SKIPPED = "queued", "done", "unchanged", "failed", "skipped"
STATES = (QUEUED, DONE, UNCHANGED, FAILED, SKIPPED)
REDIRECTED = "redirected"
FOREIGN = "foreign"
"""How a URL was found that is to be fetched: by a link, a redirect or a sitemap of another host."""


class PageLinks(NamedTuple):
    """The links of one page: `keys` has 8 bytes for each address, its `url_key` as a big-endian number."""

    url_id: int
    keys: bytes


class NewUrl(NamedTuple):
    """A URL that the crawl discovered. `found_on` is the ledger id of the first page that links to it.

    `chain` has the URLs that redirected to it, first to last, separated by blanks; for a sitemap, its nesting depth, or
    the domain that names it (`map`).
    """

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
    chain: str | None = None


class NewUrls(Sequence[NewUrl]):
    """New URLs, kept by columns in the order of `NewUrl`. Storing them so costs a third less than row by row."""

    __slots__ = ("columns",)

    def __init__(self, rows: Iterable[NewUrl] = ()) -> None:
        self.columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
        self.columns = self.columns or [[] for _ in NewUrl._fields]

    def add(self, first_id: int, columns: Sequence[Sequence[Any]]) -> None:
        """Add URLs by columns, all but the ids, which rise from the first."""
        ids, *others = self.columns
        ids.extend(range(first_id, first_id + len(columns[0])))
        for mine, more in zip(others, columns, strict=True):
            mine.extend(more)

    def column(self, name: str) -> list[Any]:
        return self.columns[NewUrl._fields.index(name)]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[NewUrl]:
        return map(NewUrl, *self.columns)

    @overload
    def __getitem__(self, place: int) -> NewUrl: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[NewUrl]: ...
    def __getitem__(self, place: int | slice) -> NewUrl | Sequence[NewUrl]:
        return list(self)[place]


class Settled(NamedTuple):
    """A queued URL with its final state. With the state `queued`: it was tried once more and stays queued, or a shorter
    path to it was found, of this `depth`."""

    id: int
    state: str
    reason: str | None = None
    detail: str | None = None
    attempts: int = 1
    http_status: int | None = None
    depth: int | None = None


class NewResult(NamedTuple):
    """The result of one URL. `data` and `metadata` are JSON text."""

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
    """The progress since the last checkpoint. `seconds`: its crawling time. `live`: facts for a person who watches."""

    found: Sequence[NewUrl] = ()
    settled: Sequence[Settled] = ()
    results: Sequence[NewResult] = ()
    links: Sequence[PageLinks] = ()
    bytes: int = 0
    in_flight: int = 0
    seconds: float = 0.0
    live: Mapping[str, object] = field(default_factory=dict)
    html: Sequence[NewHtml] = ()
    dictionaries: Sequence[NewDictionary] = ()
    shard: ShardProgress | None = None


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


def added_up(several: Sequence[Counts], seconds: float | None = None) -> Counts:
    """The counts of a crawl in several shards. `seconds`: its crawling time, which is not the sum of theirs."""
    if len(several) == 1:
        return several[0]
    sums = {name: sum(getattr(each, name) for each in several) for name in _ADDED}
    moments = [each.updated_at for each in several if each.updated_at is not None]
    slowest = max((each.seconds for each in several), default=0.0)
    return Counts(
        **sums,
        seconds=slowest if seconds is None else seconds,
        updated_at=max(moments, default=None),
        live=_live_of_all([each.live for each in several]),
    )


_ADDED = (
    *("discovered", "queued", "in_flight", "done", "unchanged", "failed", "skipped"),
    *("bytes", "checkpoints"),
)


def _live_of_all(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The facts for a person who watches, of all shards: numbers are added up, lists are put together."""
    merged: dict[str, Any] = {}
    for live in several:
        for name, value in live.items():
            if isinstance(value, int | float):
                merged[name] = merged.get(name, 0) + value
            elif isinstance(value, list):
                merged[name] = [*merged.get(name, []), *value]
            elif isinstance(value, dict):
                before = merged.setdefault(name, {})
                for key, number in value.items():
                    before[key] = before.get(key, 0) + number
    return merged


@dataclass(frozen=True, slots=True)
class Url:
    """One row of the ledger."""

    job_id: str
    id: int
    url_key: int
    url: str
    host: str
    depth: int
    state: str
    reason: str | None
    detail: str | None
    found_on: int | None
    found_via: str
    attempts: int
    http_status: int | None
    chain: str | None


class RootEnd(NamedTuple):
    """How many URLs of depth 0 were found the same way and have the same state and reason, and the first of them."""

    found_via: str
    state: str
    reason: str | None
    urls: int
    url: str
    detail: str | None


class QueuedUrl(NamedTuple):
    """A queued URL, as a crawl reads it."""

    id: int
    url_key: int
    url: str
    host: str
    depth: int
    attempts: int
    found_via: str
    chain: str | None


def not_stored(counts: Counts) -> int:
    """At least this many URLs were beyond a budget: counted, but not stored."""
    number = counts.live.get("not_stored")
    return number if isinstance(number, int) else 0

"""What travels between the processes of a crawl: msgpack frames, batched. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from silkline.crawl.plan import Plan
from silkline.model.ledger import NewResult, QueuedUrl, Settled
from silkline.model.wait import Wait


class FoundUrl(NamedTuple):
    """A new URL, as `model.ledger.NewUrl` but without its id: the recorder gives it one."""

    url_key: int
    url: str
    host: str
    depth: int
    state: str
    reason: str | None
    detail: str | None
    found_on: int | None
    found_via: str
    chain: str | None = None


class Links(NamedTuple):
    """Links of one page that lead to hosts of one other fetcher; `chain` as in the ledger, or empty.

    `source` is the host of the page, where its budget counts. `most_bytes`: what the new ones may take; 0: anything.
    """

    found_on: int
    depth: int
    via: str
    chain: str
    urls: list[str]
    source: str = ""
    most_bytes: int = 0


class FetchedPage(NamedTuple):
    """A page that was fetched: its end, what it brought and what it names.

    It counts once its links have found their owners. `names` has eight bytes for each address (seen.py).
    """

    settled: Settled
    result: NewResult | None
    depth: int
    names: bytes = b""


class Live(NamedTuple):
    """What a fetcher is doing, for people to see."""

    in_flight: int = 0
    queued: int = 0
    urls: Sequence[str] = ()


# From a fetcher to the leader.


class Batch(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Everything a fetcher came to in a few milliseconds.

    `settled` (each with its depth) has no links and counts at once; `pages` count when each part of `foreign` (the
    number of a fetcher, and encoded `Links` for it) has been answered. `answers` are the tickets of foreign links this
    fetcher took in; what was new among them is in `found`. `not_stored` are URLs that were only counted, all since this
    fetcher started.
    """

    seq: int
    settled: list[tuple[Settled, int]]
    pages: list[FetchedPage]
    found: list[FoundUrl]
    foreign: list[tuple[int, bytes]]
    answers: list[int]
    wire_bytes: int
    live: Live
    not_stored: int = 0


class HostReport(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The hosts this fetcher waits for most, and what it is doing, once in a while."""

    waits: list[Wait]
    live: Live


class Refill(msgspec.Struct, array_like=True, tag=True, gc=False):
    """There is room: what is queued in the ledger after this id?"""

    cursor: int


# From the leader to a fetcher.


class StartFetcher(msgspec.Struct, array_like=True, tag=True):
    """`slot` is where the process marks what it reads; `blamed` as in `Blamed`."""

    index: int
    plan: Plan
    slot: int
    blamed: list[tuple[str, int]] = []
    isolate_all: bool = False


class Known(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Keys of URLs that the ledger has, as an array of 64-bit integers."""

    keys: bytes


class KnownBudgets(msgspec.Struct, array_like=True, tag=True, gc=False):
    """What the ledger has of hosts, as in `store.urls.spent` and `store.urls.brought`."""

    hosts: list[tuple[str, int, int, int]]
    sources: list[tuple[str, int]]


class Roots(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Seeds, and what seeds redirected to."""

    urls: list[str]


class Go(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Everything that must be known is: start."""


class Assigned(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The URLs found in a batch have ids from this one on."""

    seq: int
    first_id: int


class Committed(msgspec.Struct, array_like=True, tag=True, gc=False):
    """These batches are durable. `allowance`: pages that may still be stored, None for any number."""

    seqs: list[int]
    allowance: int | None


class Incoming(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Links from another fetcher, to be answered with this ticket."""

    ticket: int
    links: bytes


class Refilled(msgspec.Struct, array_like=True, tag=True, gc=False):
    rows: list[QueuedUrl]
    cursor: int
    end: bool


class Level(msgspec.Struct, array_like=True, tag=True, gc=False):
    """How deep to go for now."""

    depth: int


class Drain(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Start nothing more; tell when what is in flight has ended, or its time is up."""


class Drained(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Nothing is in flight, and everything has been said."""


class Blamed(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Inputs that ended a process which read them, and how often each did."""

    inputs: list[tuple[str, int]]


class Ping(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Is the process running? It answers with `Pong`."""


class Pong(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The process is running."""


FromFetcher = Batch | HostReport | Refill | Drained | Pong
ToFetcher = (
    StartFetcher
    | Known
    | KnownBudgets
    | Roots
    | Go
    | Assigned
    | Committed
    | Incoming
    | Refilled
    | Level
    | Drain
    | Blamed
    | Ping
)


def encoder() -> msgspec.msgpack.Encoder:
    return msgspec.msgpack.Encoder()


def from_fetcher() -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(FromFetcher)


def to_fetcher() -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(ToFetcher)


def links_decoder() -> msgspec.msgpack.Decoder[list[Links]]:
    return msgspec.msgpack.Decoder(list[Links])

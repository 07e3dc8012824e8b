"""The messages between the processes of a crawl: msgpack frames, batched. Values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from silkline.crawl.plan import Plan
from silkline.model.host_wait import Wait
from silkline.model.kept_html import NewDictionary, NewHtml
from silkline.model.ledger import QUEUED, NewResult, QueuedUrl, Settled
from silkline.model.parcel import Links, Parcel

UNREADABLE: Final = (ValueError, RecursionError)
"""What decoding bytes of another process may raise: they are no msgpack or no UTF-8, have another type, or lists are
nested without end. That process may be under the control of an attacker."""


class FoundUrl(NamedTuple):
    """A new URL, as `model.ledger.NewUrl` but without its id: the recorder assigns it."""

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


class FoundUrls(msgspec.Struct, array_like=True, gc=False):
    """New URLs by columns, in the order of `FoundUrl`. So the leader passes them on without looking at each.

    A column whose values are all equal has one value only: in most batches that is more than half of them.
    """

    url_key: list[int] = []
    url: list[str] = []
    host: list[str] = []
    depth: list[int] = []
    state: list[str] = []
    reason: list[str | None] = []
    detail: list[str | None] = []
    found_on: list[int | None] = []
    found_via: list[str] = []
    chain: list[str | None] = []

    @classmethod
    def of(cls, found: Sequence[FoundUrl]) -> FoundUrls:
        columns = cls(*map(list, zip(*found, strict=True)))
        for name in cls.__struct_fields__ if len(found) > 1 else ():
            values = getattr(columns, name)
            if name != "url" and values[0] == values[-1] and values.count(values[0]) == len(found):
                setattr(columns, name, values[:1])
        return columns

    def __post_init__(self) -> None:
        if not {*map(len, msgspec.structs.astuple(self))} <= ({len(self), 1} if self.url else {0}):
            raise ValueError("the columns are not equally long")

    @property
    def columns(self) -> list[list[Any]]:
        """All columns, each with a value for every URL."""
        number = len(self)
        return [values if len(values) == number else values * number for values in msgspec.structs.astuple(self)]

    def __len__(self) -> int:
        return len(self.url)

    def queued_depths(self) -> dict[int, int]:
        """How many of them are queued at each depth."""
        if len(self.state) == 1 == len(self.depth):
            return {self.depth[0]: len(self)} if self.state[0] == QUEUED else {}
        _, _, _, depths, states, *_ = self.columns
        return Counter(depth for depth, state in zip(depths, states, strict=True) if state == QUEUED)

    def roots(self) -> list[str]:
        """Seeds, and redirect targets of seeds."""
        if 0 not in self.depth:
            return []
        _, urls, _, depths, *_, vias, _ = self.columns
        rows = zip(urls, depths, vias, strict=True)
        return [url for url, depth, via in rows if depth == 0 and via in ("redirect", "seed")]


class PageOutcome(NamedTuple):
    """A page that was fetched: its end, its result, and the addresses in it.

    It counts when the owners of its links have processed them. `names` has eight bytes for each (`packed_keys`).
    """

    settled: Settled
    result: NewResult | None
    depth: int
    names: bytes = b""
    tally: bytes = b""
    """What the page says about each field, as in `parse.fields`."""
    html: NewHtml | None = None
    dictionary: NewDictionary | None = None
    """A dictionary that later pages of this fetcher need."""


class Live(NamedTuple):
    """What a fetcher is doing, as status for people."""

    in_flight: int = 0
    queued: int = 0
    urls: Sequence[str] = ()


class BookHost(NamedTuple):
    """A host whose time is to be booked, and how many seconds of it.

    `address`: the address that it shares with other hosts, and how many seconds of its time; empty: none. `kept`: the
    host asked us to wait, so this time is not given back when the job ends.
    """

    host: str
    delay: float
    length: float
    address: str
    address_time: float
    kept: bool = False


class HostTime(NamedTuple):
    """The time of a host that was booked, by `time.monotonic`; other fields as in `store.bookings.Booked`."""

    host: str
    starts: float
    ends: float
    behind: str
    idle: float


# From a fetcher to the leader.


class Batch(msgspec.Struct, array_like=True, tag=True, gc=False):
    """All output of a fetcher in a few milliseconds.

    `settled` (each with its depth) has no links and counts at once. `pages` count when each part of `foreign` (its
    owner as in `HostOwners`, the lowest depth, and encoded `Links`) was answered; other shards do not answer. `answers`
    are the tickets of foreign links that this fetcher has processed; the new URLs among them are in `found`.
    `not_stored` is the number of URLs that were only counted, since this fetcher started.
    """

    seq: int
    settled: list[tuple[Settled, int]]
    pages: list[PageOutcome]
    found: FoundUrls
    foreign: list[tuple[int, int, bytes]]
    answers: list[int]
    wire_bytes: int
    live: Live
    not_stored: int = 0


class FetcherStatus(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The hosts this fetcher waits for most, and what it is doing. Sent at intervals.

    `robots`: what the robots.txt of its first hosts says, as text.
    """

    waits: list[Wait]
    live: Live
    robots: list[str] = []


class Refill(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Request for queued URLs after this id: the fetcher has room for own URLs of its hosts, or for foreign ones."""

    cursor: int
    foreign: bool


class Book(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Request to book hosts. `owner` is the number of this fetcher in the bookings."""

    owner: int
    hosts: list[BookHost]


class LostParser(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The parser with this slot died or sent something invalid: it is to be replaced."""

    slot: int


# From the leader to a fetcher.


class StartFetcher(msgspec.Struct, array_like=True, tag=True):
    """`slot` is where the process marks its inputs; `blamed` as in `Blamed`."""

    index: int
    plan: Plan
    slot: int
    blamed: list[tuple[str, int]] = []
    isolate_all: bool = False


class Known(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The digests of URLs that the ledger has (seen.py), eight bytes each. `foreign`: only other hosts link to them."""

    digests: bytes
    foreign: bytes = b""


class KnownBudgets(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The used budgets of hosts in the ledger, as in `store.urls.spent` and `store.urls.bytes_by_source`."""

    hosts: list[tuple[str, int, int, int]]
    sources: list[tuple[str, int]]


class Roots(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Seeds, and redirect targets of seeds."""

    urls: list[str]


class Go(msgspec.Struct, array_like=True, tag=True, gc=False):
    """All needed state was sent: start."""


class Assigned(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The URLs found in a batch have ids, starting with this one."""

    seq: int
    first_id: int


class Committed(msgspec.Struct, array_like=True, tag=True, gc=False):
    """These batches are durable. `allowance`: pages that may still be stored. None: no limit."""

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


class Granted(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The bookings that were made."""

    hosts: list[HostTime]


class Level(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The depth down to which to fetch for now. Everything above `sure` was fetched."""

    depth: int
    sure: int


class Drain(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Start no more requests. Answer with `Drained` when the requests in flight have ended, or at the time limit."""


class Drained(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Nothing is in flight, and all output was sent."""


class Blamed(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Inputs that killed a process, and how often each did."""

    inputs: list[tuple[str, int]]


class Ping(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Asks whether the process is running. It answers with `Pong`."""


class Pong(msgspec.Struct, array_like=True, tag=True, gc=False):
    """The process is running."""


FromFetcher = Batch | FetcherStatus | Refill | Book | LostParser | Drained | Pong
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
    | Granted
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


def parcel_decoder() -> msgspec.msgpack.Decoder[Parcel]:
    return msgspec.msgpack.Decoder(Parcel)


def links_decoder() -> Callable[[bytes], list[Links]]:
    """Decodes the links that another fetcher found. What cannot be decoded has no links.

    The leader passes them on without looking, and a fetcher that was taken over must not end other fetchers.
    """
    decode = msgspec.msgpack.Decoder(list[Links]).decode

    def links_in(data: bytes) -> list[Links]:
        try:
            return decode(data)
        except UNREADABLE:
            return []

    return links_in

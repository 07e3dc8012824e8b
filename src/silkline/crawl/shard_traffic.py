"""The traffic of one shard with the other shards of its crawl, as its leader sees it.

What goes out is collected for the next checkpoint: links and roots for other shards, the cursors of what was taken in,
and how many pages of the limit are wanted. What arrives is read from the database, split by the fetchers that own the
hosts, and counts as taken in when all of them have answered. Rows of one sender are taken in in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from silkline.crawl.host_owners import HostOwners, abroad
from silkline.crawl.messages import links_decoder, parcel_decoder
from silkline.crawl.plan import Plan
from silkline.model.kind import Progress
from silkline.model.parcel import Links, Parcel
from silkline.model.sharding import SEEDS_FILE, ShardProgress
from silkline.model.url import host_of
from silkline.store import shard_links
from silkline.store.shard_links import Arrived, Outlook

MOST_OPEN: Final = 32
"""Rows that are taken in at the same time."""
SWEEP_AFTER: Final = 64
"""So many rows are removed at once, after they were taken in."""
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True, eq=False)
class OpenParcel:
    """A row of another shard that is being taken in."""

    sender: int
    number: int
    roots: list[str] = field(default_factory=list)
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    """Encoded links for each fetcher."""
    answered: bool = False


class ShardTraffic:
    """One for each attempt of a shard. The recorder packs it into every checkpoint."""

    def __init__(self, progress: Progress, plan: Plan) -> None:
        assert plan.shard is not None  # noqa: S101
        self._job, self._database = progress.job, progress.database
        self._plan = plan
        self._owners = HostOwners(plan.fetchers)
        self._links: dict[int, list[bytes]] = {}
        self._depths: dict[int, int] = {}
        self._roots: list[str] = []
        self._read_to: dict[int, int] = {}
        self._open: dict[int, deque[OpenParcel]] = {}
        self._taken: dict[int, int] = {}
        self._unswept = 0
        self._decode_parcel, self._decode_links = parcel_decoder().decode, links_decoder()
        self.quiet = False
        """The crawl ends before all URLs were fetched, and this shard sends nothing more."""
        self.outlook = Outlook(None, 0 if plan.limit is not None else None, None, False)

    def load(self) -> None:
        """Read where the last attempt was. Runs in the recorder's thread."""
        known = shard_links.cursors(self._database, self._job)
        others = [shard for shard in range(SEEDS_FILE, self._plan.shards) if shard != self._plan.shard]
        self._read_to = {sender: known.get(sender, 0) for sender in others}
        self.look()

    # What goes out.

    def send(self, owner: int, depth: int, links: bytes) -> None:
        """Links to hosts of another shard, from one batch of a fetcher."""
        shard = abroad(owner)
        self._links.setdefault(shard, []).append(links)
        self._depths[shard] = min(depth, self._depths.get(shard, depth))

    def send_roots(self, urls: list[str]) -> None:
        """Roots widen the scope of the crawl in all shards."""
        self._roots += urls

    @property
    def waits(self) -> bool:
        """Whether something must be stored."""
        return bool(self._links or self._roots or self._taken)

    def pack(self, lowest: int | None, wanted: int) -> ShardProgress:
        """Everything since the last checkpoint."""
        receivers = [shard for shard in range(self._plan.shards) if shard != self._plan.shard] if self._roots else []
        sent = [
            (shard, self._depths.get(shard, 0), _encode(Parcel(self._links.get(shard, []), self._roots)))
            for shard in dict.fromkeys((*self._links, *receivers))
        ]
        self._unswept += len(self._taken)
        sweep = self._unswept >= SWEEP_AFTER
        progress = ShardProgress(sent, list(self._taken.items()), lowest, wanted, sweep, self.quiet)
        self._links, self._depths, self._roots, self._taken = {}, {}, [], {}
        self._unswept = 0 if sweep else self._unswept
        return progress

    # What arrives.

    @property
    def unanswered(self) -> int:
        return sum(map(len, self._open.values()))

    def look(self) -> Outlook:
        """Read how the rest of the crawl is doing. Runs in the recorder's thread."""
        self.outlook = shard_links.outlook(self._database, self._job)
        return self.outlook

    def read(self) -> list[OpenParcel]:
        """Rows that were not read before. Runs in the recorder's thread."""
        room = MOST_OPEN - self.unanswered
        if room < 1:
            return []
        return [self._unpack(row) for row in shard_links.arrived(self._database, self._job, self._read_to, most=room)]

    def begin(self, parcel: OpenParcel) -> None:
        """The links of this row go to the fetchers now."""
        self._read_to[parcel.sender] = parcel.number
        self._open.setdefault(parcel.sender, deque()).append(parcel)

    def complete(self, parcel: OpenParcel) -> None:
        """All fetchers have answered, and the recorder has the new URLs: the cursor may move."""
        parcel.answered = True
        waiting = self._open[parcel.sender]
        while waiting and waiting[0].answered:
            self._taken[parcel.sender] = waiting.popleft().number

    def _unpack(self, row: Arrived) -> OpenParcel:
        content = self._decode_parcel(row.links)
        parcel = OpenParcel(row.sender, row.number, content.roots)
        if self._plan.fetchers == 1:
            parcel.parts = [(0, links) for links in content.links]
            return parcel
        parts: dict[int, list[Links]] = {}
        for each in content.links:
            for links in self._decode_links(each):
                for owner, urls in self._split(links.urls).items():
                    parts.setdefault(owner, []).append(links._replace(urls=urls))
        parcel.parts = [(owner, _encode(links)) for owner, links in parts.items()]
        return parcel

    def _split(self, urls: list[str]) -> dict[int, list[str]]:
        split: dict[int, list[str]] = {}
        owner_of: Callable[[str], int] = self._owners.owner_of
        for url in urls:
            split.setdefault(owner_of(host_of(url)), []).append(url)
        return split

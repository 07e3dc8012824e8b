"""Which fetcher owns a host. Every process computes the same owner, from the number of fetchers and of shards alone."""

from __future__ import annotations

from typing import Final

from silkline.model.url import shard_of, slot_of

SLOTS: Final = 840
"""Divisible by every number of fetchers up to eight."""
RECORDING: Final = 0.29
"""The cost of writing all checkpoints, relative to fetching all pages (measured: 3.8 to 13.1 s of CPU)."""


class HostOwners:
    """Hosts are assigned to slots, and slots to fetchers. A host of another shard has that shard as its owner."""

    def __init__(self, fetchers: int, shard: int | None = None, shards: int = 1) -> None:
        self.fetchers = fetchers
        self._shard = shard
        self._shards = shards
        self._owners = slots(fetchers)
        self._known: dict[str, int] = {}

    def owner_of(self, host: str) -> int:
        """The number of the fetcher; for a host of another shard, `abroad` of that shard."""
        owner = self._known.get(host)
        if owner is None:
            if len(self._known) > 200_000:
                self._known.clear()
            owner = self._known[host] = self._find(host)
        return owner

    def _find(self, host: str) -> int:
        if self._shard is not None and (shard := shard_of(host, self._shards)) != self._shard:
            return abroad(shard)
        return self._owners[slot_of(host, SLOTS)]


def abroad(shard: int) -> int:
    """A shard as the owner of a host: a negative number. `abroad(abroad(shard))` is the shard."""
    return -1 - shard


def slots(fetchers: int) -> list[int]:
    """The owner of each slot. The leader gets fewer, so that its process has no more work than the others."""
    others = fetchers - 1
    first = round(SLOTS * max(1 - RECORDING * others, 0.25) / fetchers)
    return [0 if slot < first or not others else 1 + (slot - first) % others for slot in range(SLOTS)]

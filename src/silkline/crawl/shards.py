"""Which fetcher owns a host: computed, the same in every process, from the number of fetchers alone."""

from __future__ import annotations

from typing import Final

from silkline.model.url import shard_of

SLOTS: Final = 840
"""Divisible by every number of fetchers up to eight."""
LEADER_WEIGHT: Final = 0.8
"""The share of fetcher 0: its process also writes the checkpoints."""


class Shards:
    """The hosts are spread over slots, and the slots over fetchers."""

    def __init__(self, fetchers: int) -> None:
        self.fetchers = fetchers
        self._owners = slots(fetchers)
        self._known: dict[str, int] = {}

    def owner_of(self, host: str) -> int:
        owner = self._known.get(host)
        if owner is None:
            if len(self._known) > 200_000:
                self._known.clear()
            owner = self._known[host] = self._owners[shard_of(host, SLOTS)]
        return owner


def slots(fetchers: int, leader_weight: float = LEADER_WEIGHT) -> list[int]:
    """The owner of each slot."""
    first = round(SLOTS * leader_weight / (fetchers - 1 + leader_weight))
    others = fetchers - 1
    return [0 if slot < first or not others else 1 + (slot - first) % others for slot in range(SLOTS)]

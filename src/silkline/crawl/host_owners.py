"""Which fetcher owns a host. Every process computes the same owner, from the number of fetchers alone."""

from __future__ import annotations

from typing import Final

from silkline.model.url import slot_of

SLOTS: Final = 840
"""Divisible by every number of fetchers up to eight."""
RECORDING: Final = 0.29
"""The cost of writing all checkpoints, relative to fetching all pages (measured: 3.8 to 13.1 s of CPU)."""


class HostOwners:
    """Hosts are assigned to slots, and slots to fetchers."""

    def __init__(self, fetchers: int) -> None:
        self.fetchers = fetchers
        self._owners = slots(fetchers)
        self._known: dict[str, int] = {}

    def owner_of(self, host: str) -> int:
        owner = self._known.get(host)
        if owner is None:
            if len(self._known) > 200_000:
                self._known.clear()
            owner = self._known[host] = self._owners[slot_of(host, SLOTS)]
        return owner


def slots(fetchers: int) -> list[int]:
    """The owner of each slot. The leader gets fewer, so that its process has no more work than the others."""
    others = fetchers - 1
    first = round(SLOTS * max(1 - RECORDING * others, 0.25) / fetchers)
    return [0 if slot < first or not others else 1 + (slot - first) % others for slot in range(SLOTS)]

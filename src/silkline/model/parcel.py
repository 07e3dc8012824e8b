"""Links on their way from one fetcher or shard to another, as values. A parcel is what one shard sends to another."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class Links(NamedTuple):
    """Links of one page to hosts of one other fetcher or shard. `chain` as in the ledger, or empty.

    `source` is the host of the page, whose budget they use. `most_bytes` limits the size of the new URLs; 0: no limit.
    """

    found_on: int
    depth: int
    via: str
    chain: str
    urls: list[str]
    source: str = ""
    most_bytes: int = 0


class Parcel(msgspec.Struct, array_like=True, gc=False):
    """What one checkpoint of a shard sends to another shard: parts of batches with encoded `Links`, and roots."""

    links: list[bytes]
    roots: list[str] = []


def packed_seeds(urls: list[str]) -> bytes:
    """Seeds of a file for one shard, as a parcel that it takes in."""
    links = Links(0, 0, "seed", "", urls)
    return msgspec.msgpack.encode(Parcel([msgspec.msgpack.encode([links])]))

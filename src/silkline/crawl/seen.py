"""Which URLs a fetcher has seen: 64-bit digests in about 12 bytes each, where a Python set of integers takes 75 to 83.

Digests have a seed that is chosen at random for each attempt: with a known one, a page could link to a URL that has the
digest of another one, and so keep that one out of the crawl. They are packed in small buckets, which `bytes.find`
searches. Buckets are split one at a time as the set grows (linear hashing), so no insertion ever waits for a rebuild of
the whole set. A cache of the last URLs, as text, is checked first: it covers the links that every page of a site
repeats.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from xxhash import xxh3_64_digest

_LOAD: Final = 24  # keys in a bucket, on average
_RECENT: Final = 16_384
_LONGEST_RECENT: Final = 1_000  # characters: longer URLs are not remembered as text


def seeded_digests(urls: Iterable[str], seed: int) -> bytes:
    """The digests of URLs, concatenated in order."""
    return b"".join(map(xxh3_64_digest, map(str.encode, urls), itertools.repeat(seed)))


class Seen:
    """A set of URLs."""

    def __init__(self, seed: int, *, buckets: int = 1024) -> None:
        if buckets & (buckets - 1):
            raise ValueError("the number of buckets must be a power of two")
        self._seed = seed
        self._buckets: list[bytes] = [b""] * buckets
        self._mask = buckets - 1
        self._split = 0
        self._size = 0
        self._recent: set[str] = set()
        self._older: set[str] = set()

    def __len__(self) -> int:
        return self._size

    def add_all(self, urls: Iterable[str]) -> list[str]:
        """The new URLs, each once and in order. All of them count as seen from now on."""
        recent, older = self._recent, self._older
        buckets, mask, split = self._buckets, self._mask, self._split
        digest_of, seed, number_of = xxh3_64_digest, self._seed, int.from_bytes
        fresh: list[str] = []
        for url in urls:
            if url in recent:
                continue
            if len(url) <= _LONGEST_RECENT:
                recent.add(url)
            if url in older:
                continue
            # `_add`, inlined: it runs for every link of every page, and takes a third less time this way.
            digest = digest_of(url.encode(), seed)
            number = number_of(digest, "little")
            at = number & mask
            if at < split:
                at = number & (2 * mask + 1)
            bucket = buckets[at]
            if digest in bucket and _place(bucket, digest) >= 0:
                continue
            buckets[at] = bucket + digest
            fresh.append(url)
        self._size += len(fresh)
        while self._size > len(buckets) * _LOAD:
            self._split_next()
        if len(recent) > _RECENT:
            self._older, self._recent = recent, set()
        return fresh

    def add(self, url: str) -> bool:
        """Add a URL. Returns whether it is new."""
        return self._add(xxh3_64_digest(url.encode(), self._seed))

    def forget(self, url: str) -> None:
        """Remove a URL, if it is in the set."""
        digest = xxh3_64_digest(url.encode(), self._seed)
        at = self._bucket_of(digest)
        bucket = self._buckets[at]
        place = _place(bucket, digest)
        if place >= 0:
            self._buckets[at] = bucket[:place] + bucket[place + 8 :]
            self._size -= 1
        self._recent.discard(url)
        self._older.discard(url)

    def load(self, digests: bytes) -> None:
        """Add URLs by their digests, as `seeded_digests` makes them with the same seed."""
        add = self._add
        for at in range(0, len(digests), 8):
            add(digests[at : at + 8])

    def __contains__(self, url: str) -> bool:
        digest = xxh3_64_digest(url.encode(), self._seed)
        return _place(self._buckets[self._bucket_of(digest)], digest) >= 0

    def _bucket_of(self, digest: bytes) -> int:
        number = int.from_bytes(digest, "little")
        bucket = number & self._mask
        return bucket if bucket >= self._split else number & (2 * self._mask + 1)

    def _add(self, digest: bytes) -> bool:
        number = int.from_bytes(digest, "little")
        at = number & self._mask
        if at < self._split:
            at = number & (2 * self._mask + 1)
        bucket = self._buckets[at]
        if digest in bucket and _place(bucket, digest) >= 0:
            return False
        self._buckets[at] = bucket + digest
        self._size += 1
        if self._size > len(self._buckets) * _LOAD:
            self._split_next()
        return True

    def _split_next(self) -> None:
        bit = self._mask + 1
        full = self._buckets[self._split]
        stay: list[bytes] = []
        move: list[bytes] = []
        for at in range(0, len(full), 8):
            digest = full[at : at + 8]
            (move if int.from_bytes(digest, "little") & bit else stay).append(digest)
        self._buckets[self._split] = b"".join(stay)
        self._buckets.append(b"".join(move))
        self._split += 1
        if self._split == bit:
            self._split, self._mask = 0, 2 * self._mask + 1


def _place(bucket: bytes, digest: bytes) -> int:
    """The position of the digest in the bucket, or -1. A match across two neighbouring digests does not count."""
    at = bucket.find(digest)
    while at & 7 and at >= 0:
        at = bucket.find(digest, at + 1)
    return at

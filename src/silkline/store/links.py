"""The links of a crawl: for each page the keys of the addresses that it links to, written in its checkpoint.

One row has the links of many pages. To find the pages that link to an address, all rows are read: 0.03 s of CPU for a
million links, for any number of addresses at once. This module has only ids and keys; `backlinks` adds the URLs.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from silkline.model.database import Database, Transaction
from silkline.model.ledger import PageLinks
from silkline.portions import portions_of
from silkline.store.shard_members import family, member_of

KEY: Final = 8
ROW_BYTES: Final = 256 << 10
"""A row is closed when its keys take so much; 500 pages of 60 links do."""
_ROWS: Final = 64


@dataclass(slots=True)
class Sources:
    """Pages that name an address: how many there are, and the first of them."""

    count: int = 0
    ids: list[int] = field(default_factory=list)


def append(transaction: Transaction, job_id: str, links: Sequence[PageLinks]) -> None:
    """Write the links of some pages, as part of the checkpoint that ends them."""
    for some in portions_of(links, len(links), lambda page: len(page.keys), ROW_BYTES):
        ids = [each.url_id for each in some]
        pages = [number for each in some for number in (each.url_id, len(each.keys) // KEY)]
        transaction.rows(
            "links.append",
            job_id=job_id,
            first_id=min(ids),
            last_id=max(ids),
            pages=struct.pack(f"<{len(pages)}q", *pages),
            keys=b"".join([each.keys for each in some]),
        )


def sources(database: Database, job_id: str, keys: Iterable[int], *, most: int) -> dict[int, Sources]:
    """Who names each of these addresses, in one pass over all the links of a job."""
    names = {_as_read(key): key for key in keys}
    found = {key: Sources() for key in names.values()}
    wanted = frozenset(names)
    for row in _every_row(database, family(database, job_id)) if names else ():
        links = memoryview(row["keys"]).cast("Q")
        here = wanted.intersection(links)
        start = 0
        for url_id, number in _pages(row) if here else ():
            for name in here.intersection(links[start : start + number]):
                source = found[names[name]]
                source.count += 1
                if len(source.ids) < most:
                    source.ids.append(url_id)
            start += number
    return found


def keys_of(database: Database, job_id: str, url_id: int) -> list[int] | None:
    """The addresses that one page names, in its order; None if its links were not written down."""
    job_id = member_of(database, job_id, url_id)
    for around in database.rows("links.around", job_id=job_id, id=url_id):
        start = 0
        for id, number in _pages(around):
            if id == url_id:
                row = database.rows("links.row", job_id=job_id, first_id=around["first_id"])[0]
                return list(struct.unpack_from(f">{number}q", row["keys"], KEY * start))
            start += number
    return None


def every(database: Database, job_id: str) -> Iterator[tuple[int, list[int]]]:
    """The ledger id of every page, and the keys of the addresses that it names."""
    for row in _every_row(database, family(database, job_id)):
        start = 0
        for url_id, number in _pages(row):
            yield url_id, list(struct.unpack_from(f">{number}q", row["keys"], KEY * start))
            start += number


def _every_row(database: Database, job_ids: Iterable[str]) -> Iterator[dict[str, Any]]:
    for job_id in job_ids:
        after = 0
        while rows := database.rows("links.page", job_id=job_id, after=after, wanted=_ROWS):
            yield from rows
            after = rows[-1]["first_id"]


def _pages(row: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Ledger id and number of links of each page of a row."""
    return struct.iter_unpack("<qq", row["pages"])


def _as_read(key: int) -> int:
    """What a `memoryview` reads where these eight bytes stand."""
    return int.from_bytes(key.to_bytes(KEY, "big", signed=True), sys.byteorder)

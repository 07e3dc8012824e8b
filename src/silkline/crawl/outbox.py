"""Collects the output of a fetcher for the leader, and tracks which part is not durable yet."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter

import msgspec

from silkline.crawl.messages import Batch, FoundUrl, FoundUrls, Live, PageOutcome
from silkline.model.ledger import QUEUED, Settled
from silkline.model.parcel import Links

_url_of = attrgetter("url")
_encode = msgspec.msgpack.Encoder().encode


class Outbox:
    """Collects a batch. `unsaved` and `unsaved_bytes` are what must be fetched again after a crash."""

    def __init__(self) -> None:
        self._seq = 0
        self.settled: list[tuple[Settled, int]] = []
        self.pages: list[PageOutcome] = []
        self.found: list[FoundUrl] = []
        self.answers: list[int] = []
        self.wire_bytes = 0
        self.not_stored = 0
        """URLs that were only counted, since this fetcher started."""
        self._foreign: defaultdict[int, list[Links]] = defaultdict(list)
        self._bytes = 0
        self._sent: dict[int, tuple[list[int], int, int, list[str]]] = {}
        self._unassigned: dict[int, list[FoundUrl]] = {}
        self.unsaved = 0
        self.unsaved_pages = 0
        self.unsaved_bytes = 0

    def settle(self, settled: Settled, depth: int) -> None:
        """Add the end of a URL without links, or a failed try that will be retried."""
        self.settled.append((settled, depth))
        self.unsaved += 1

    def page(self, ended: PageOutcome) -> None:
        """Add the end of a URL with a result or links."""
        self.pages.append(ended)
        size = len(ended.names) + (len(ended.result.data) if ended.result is not None else 0)
        size += len(ended.html.html) if ended.html is not None else 0
        self._bytes += size
        self.unsaved += 1
        self.unsaved_bytes += size
        self.unsaved_pages += ended.result is not None

    def foreign(self, owner: int, links: Links) -> None:
        """Add links that another fetcher, or another shard, must check."""
        self._foreign[owner].append(links)

    def __bool__(self) -> bool:
        return bool(self.settled or self.pages or self.found or self.answers or self._foreign)

    @property
    def waits(self) -> bool:
        """Something was not sent yet, or URLs that were sent have no ids yet."""
        return bool(self) or bool(self._unassigned)

    def pack(self, live: Live) -> Batch:
        """Return everything collected as one batch, and start a new one."""
        self._seq += 1
        ids = [settled.id for settled, _ in self.settled if settled.state != QUEUED]
        ids += [ended.settled.id for ended in self.pages]
        stored = sum(ended.result is not None for ended in self.pages)
        abroad = [url for several in self._foreign.values() for links in several for url in links.urls]
        links_bytes = sum(map(len, map(_url_of, self.found))) + sum(map(len, abroad))
        self._bytes += links_bytes
        self.unsaved_bytes += links_bytes
        self._sent[self._seq] = (ids, stored, self._bytes, abroad)
        self.unsaved -= len(self.settled) + len(self.pages) - len(ids)  # retries are not an end
        if self.found:
            self._unassigned[self._seq] = self.found
        batch = Batch(
            seq=self._seq,
            settled=self.settled,
            pages=self.pages,
            found=FoundUrls.of(self.found),
            foreign=[
                (owner, min(each.depth for each in links), _encode(links)) for owner, links in self._foreign.items()
            ],
            answers=self.answers,
            wire_bytes=self.wire_bytes,
            live=live,
            not_stored=self.not_stored,
        )
        self.settled, self.pages, self.found, self.answers = [], [], [], []
        self._foreign = defaultdict(list)
        self.wire_bytes = self._bytes = 0
        return batch

    def assigned(self, seq: int) -> list[FoundUrl]:
        """The URLs of a batch that now have ids."""
        return self._unassigned.pop(seq)

    def committed(self, seq: int) -> tuple[list[int], list[str]]:
        """A batch is durable. Returns the ids of its finished URLs, and its links to hosts of other fetchers."""
        ids, stored, size, abroad = self._sent.pop(seq)
        self.unsaved -= len(ids)
        self.unsaved_pages -= stored
        self.unsaved_bytes -= size
        return ids, abroad

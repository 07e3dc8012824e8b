"""What a fetcher has come to since it last spoke to the leader, and what of that is not durable yet."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from silkline.crawl.messages import Batch, FetchedPage, FoundUrl, Links, Live
from silkline.model.ledger import QUEUED, Settled

_encode = msgspec.msgpack.Encoder().encode


class Outbox:
    """Collects a batch. `unsaved` and `unsaved_bytes` are what a crash now would make us fetch again."""

    def __init__(self) -> None:
        self._seq = 0
        self.settled: list[tuple[Settled, int]] = []
        self.pages: list[FetchedPage] = []
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
        """The end of a URL that leads nowhere, or one more try behind it."""
        self.settled.append((settled, depth))
        self.unsaved += 1

    def page(self, ended: FetchedPage) -> None:
        """The end of a URL that brought something."""
        self.pages.append(ended)
        size = len(ended.names) + (len(ended.result.data) if ended.result is not None else 0)
        self._bytes += size
        self.unsaved += 1
        self.unsaved_bytes += size
        self.unsaved_pages += ended.result is not None

    def foreign(self, fetcher: int, links: Links) -> None:
        """Links that another fetcher must judge."""
        self._foreign[fetcher].append(links)

    def __bool__(self) -> bool:
        return bool(self.settled or self.pages or self.found or self.answers or self._foreign)

    @property
    def waits(self) -> bool:
        """Something has not been handed in, or URLs that were have no ids yet."""
        return bool(self) or bool(self._unassigned)

    def pack(self, live: Live) -> Batch:
        """Everything collected, as one batch; a new one begins."""
        self._seq += 1
        ids = [settled.id for settled, _ in self.settled if settled.state != QUEUED]
        ids += [ended.settled.id for ended in self.pages]
        stored = sum(ended.result is not None for ended in self.pages)
        abroad = [url for several in self._foreign.values() for links in several for url in links.urls]
        links_bytes = sum(len(found.url) for found in self.found) + sum(map(len, abroad))
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
            found=self.found,
            foreign=[(fetcher, _encode(links)) for fetcher, links in self._foreign.items()],
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
        """A batch is durable: the ids of the URLs that ended in it, and the links it sent abroad."""
        ids, stored, size, abroad = self._sent.pop(seq)
        self.unsaved -= len(ids)
        self.unsaved_pages -= stored
        self.unsaved_bytes -= size
        return ids, abroad

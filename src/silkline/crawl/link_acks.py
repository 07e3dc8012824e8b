"""Links in transit between fetchers. A page counts only when every fetcher that got links of it has processed them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from silkline.crawl.messages import PageOutcome
from silkline.crawl.recorder import Delivery


@dataclass(slots=True)
class UnansweredBatch:
    """The pages of one batch, and how many fetchers must still answer."""

    delivery: Delivery
    pages: list[PageOutcome]
    answers: int


class LinkAcks:
    """Each ticket stands for the links of one batch to one fetcher."""

    def __init__(self) -> None:
        self._next = 1
        self._open: dict[int, tuple[UnansweredBatch, int, bytes]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def issue(
        self, delivery: Delivery, pages: list[PageOutcome], foreign: list[tuple[int, bytes]]
    ) -> list[tuple[int, int]]:
        """Issue a ticket for each part: (ticket, fetcher)."""
        waiting = UnansweredBatch(delivery, pages, len(foreign))
        issued = []
        for fetcher, links in foreign:
            self._open[self._next] = (waiting, fetcher, links)
            issued.append((self._next, fetcher))
            self._next += 1
        return issued

    def links(self, ticket: int) -> bytes:
        return self._open[ticket][2]

    def answered(self, ticket: int) -> UnansweredBatch | None:
        """A fetcher has processed the links. Returns the batch if this was the last open answer."""
        waiting, _, _ = self._open.pop(ticket)
        waiting.answers -= 1
        return waiting if waiting.answers == 0 else None

    def disown(self, fetcher: object) -> None:
        """A fetcher died: its pages that still wait for answers will be fetched again, so they do not count."""
        for waiting, _, _ in self._open.values():
            if waiting.delivery[0] is fetcher:
                waiting.pages = []

    def unanswered(self, fetcher: int) -> Iterator[int]:
        """Tickets that a fetcher has not answered, in order, for its replacement."""
        return iter([ticket for ticket, (_, owner, _) in self._open.items() if owner == fetcher])

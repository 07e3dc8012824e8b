"""The leader, as its own fetcher 0 sees it: without a socket."""

from __future__ import annotations

from collections.abc import Callable

from silkline.crawl.messages import Batch, Book, Drained, FetcherStatus, FromFetcher, Refill
from silkline.crawl.process_tree import Seat


class LocalInbox:
    """Implements `LeaderInbox`."""

    def __init__(self, heard: Callable[[Seat, FromFetcher], None]) -> None:
        self._heard = heard
        self.seat: Seat

    def hand_in(self, batch: Batch) -> None:
        self._heard(self.seat, batch)

    def show(self, status: FetcherStatus) -> None:
        self._heard(self.seat, status)

    def ask_for_more(self, cursor: int, foreign: bool, /) -> None:
        self._heard(self.seat, Refill(cursor, foreign))

    def book(self, hosts: Book) -> None:
        self._heard(self.seat, hosts)

    def drained(self) -> None:
        self._heard(self.seat, Drained())

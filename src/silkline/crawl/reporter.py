"""Reports of a fetcher to the leader: batches soon after a URL was finished, waiting hosts at intervals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from silkline.crawl.frontier import Frontier
from silkline.crawl.host_status import Lookout
from silkline.crawl.messages import Batch, Book, FetcherStatus, Live
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import Tuning
from silkline.crawl.robots_notes import RobotsNotes


class LeaderInbox(Protocol):
    """The leader, as a fetcher sees it."""

    def hand_in(self, batch: Batch) -> None: ...
    def show(self, status: FetcherStatus) -> None: ...
    def ask_for_more(self, cursor: int, foreign: bool, /) -> None: ...
    def book(self, hosts: Book) -> None: ...
    def drained(self) -> None: ...


class Reporter:
    """Must be created inside an event loop."""

    def __init__(
        self,
        tuning: Tuning,
        leader: LeaderInbox,
        outbox: Outbox,
        frontier: Frontier,
        live: Callable[[], Live],
        robots: RobotsNotes,
    ) -> None:
        self._tuning = tuning
        self._leader = leader
        self._outbox = outbox
        self._live = live
        self._robots = robots
        self._lookout = Lookout(frontier)
        self._loop = asyncio.get_running_loop()
        self._flush_later: asyncio.Handle | None = None
        self._look_later: asyncio.TimerHandle | None = None

    def flush_soon(self) -> None:
        if self._flush_later is None and self._outbox:
            self._flush_later = self._loop.call_later(self._tuning.flush_seconds, self.flush)

    def flush_next(self) -> None:
        """Send the batch in the next step of the event loop."""
        if self._flush_later is not None:
            self._flush_later.cancel()
        self._flush_later = self._loop.call_soon(self.flush)

    def flush(self) -> None:
        if self._flush_later is not None:
            self._flush_later.cancel()
        self._flush_later = None
        if self._outbox:
            self._leader.hand_in(self._outbox.pack(self._live()))

    def look_on(self, first: Callable[[], None]) -> None:
        """Report which hosts wait, and why, at intervals until `close`. `first` is called before each report."""
        first()
        waits = self._lookout.look(self._loop.time(), time.time())
        self._leader.show(FetcherStatus(waits, self._live(), self._robots.take()))
        self._look_later = self._loop.call_later(self._tuning.look_seconds, self.look_on, first)

    def close(self) -> None:
        for timer in (self._flush_later, self._look_later):
            if timer is not None:
                timer.cancel()
        self._flush_later = self._look_later = None

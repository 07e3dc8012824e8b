"""What the leader of a shard does beside crawling: it takes links of other shards in, follows the depth and the end of
the whole crawl, and gives its slot back when it has nothing to do and another job waits. In a whole crawl it does
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from silkline.crawl.link_acks import LinkAcks
from silkline.crawl.messages import Committed, PageOutcome
from silkline.crawl.process_tree import Seat
from silkline.crawl.recorder import Delivery, Recorder
from silkline.crawl.shard_traffic import OpenParcel
from silkline.errors import NothingToDo
from silkline.model.sharding import FINISHED, OVER_DURATION, OVER_LIMIT

LOOK: Final = 0.5
"""Seconds between two looks at the database, while there is work."""
IDLE_LOOK: Final = 0.2
"""The same without work, if the database cannot notify this worker."""
NOTIFIED_LOOK: Final = 1.0
"""The same for a shard that waits for links and is notified of them."""
PATIENCE: Final = 0.5
"""A shard without work keeps its slot so long, because links may arrive."""
LAST_PAGES: Final = 3.0
"""How long a shard waits for requests in flight, when the crawl ends before all URLs were fetched."""


class ShardPart:
    """`send_on` sends links to the fetchers of this shard; `widen` tells them roots."""

    def __init__(
        self,
        recorder: Recorder,
        tickets: LinkAcks,
        send_on: Callable[[Delivery, list[PageOutcome], list[tuple[int, bytes]]], bool],
        widen: Callable[[list[str]], None],
    ) -> None:
        self._recorder = recorder
        self._traffic = recorder.traffic
        self._tickets = tickets
        self._send_on = send_on
        self._widen = widen
        self._loop = asyncio.get_running_loop()
        self._looked_at = self._ending_since = 0.0
        self._idle_since: float | None = None
        self._is_notified = False
        self._gives_up = False
        self._told: int | None = None
        self.reason: str | None = None
        """Why URLs are left over at the end; None: all were fetched."""

    # What the leader sends.

    def send(self, foreign: Sequence[tuple[int, int, bytes]]) -> list[tuple[int, bytes]]:
        """Keep links to other shards for the next checkpoint. Returns those for other fetchers of this shard."""
        here = []
        for owner, depth, links in foreign:
            if owner >= 0:
                here.append((owner, links))
            elif self._traffic is not None:
                self._traffic.send(owner, depth, links)
        return here

    def send_roots(self, roots: list[str]) -> None:
        if self._traffic is not None:
            self._traffic.send_roots(roots)

    def complete(self, parcel: OpenParcel) -> None:
        """All fetchers have taken in the links of a row of another shard."""
        if self._traffic is not None:
            self._traffic.complete(parcel)

    @property
    def allowance(self) -> int | None:
        """Pages that fetchers may still fetch and store."""
        ends = self._traffic is not None and self._traffic.outlook.ending in (OVER_LIMIT, OVER_DURATION)
        return 0 if ends else self._recorder.allowance

    def tell_allowance(self, seats: Sequence[Seat]) -> None:
        """The share of the limit changes without a batch of a fetcher, so tell all of them."""
        allowance = self.allowance
        if self._traffic is not None and allowance is not None and allowance != self._told:
            self._told = allowance
            for seat in seats:
                if seat.ready:
                    seat.send(Committed([], allowance))

    # The main loop.

    async def is_over(self) -> bool:
        """Look at the rest of the crawl from time to time. Returns whether this attempt is over; `reason` says why."""
        traffic, now = self._traffic, self._loop.time()
        if traffic is None:
            return False
        idle = self._has_nothing_to_do()
        if now - self._looked_at < self._time_between_looks(idle=idle):
            return False
        self._looked_at = now
        outlook = await self._recorder.ask(traffic.look)
        arrived = await self._recorder.ask(traffic.read)
        for parcel in arrived:
            self._take_in(parcel)
        self._recorder.levels.share(outlook.level, outlook.settled, now)
        self._recorder.deliver_rest()
        if outlook.ending == FINISHED:
            return True
        if outlook.ending in (OVER_LIMIT, OVER_DURATION):
            self.reason = outlook.ending
            return await self._has_come_to_rest(bool(arrived), now)
        if idle and not arrived and self._recorder.wanted and (self._recorder.wanted < 0 or outlook.remaining):
            await self._recorder.save(idle=True)  # pages of the limit are returned, or taken
        self._give_up_slot(idle=idle and not arrived, wanted=outlook.wanted, now=now)
        return self._gives_up

    def look_soon(self) -> None:
        """Links may have arrived, or the end of the crawl was decided."""
        self._looked_at, self._is_notified = 0.0, True

    def check_idle(self) -> None:
        """Raise `NothingToDo` if this attempt ends to give its slot back."""
        if self._gives_up:
            raise NothingToDo()

    def _take_in(self, parcel: OpenParcel) -> None:
        assert self._traffic is not None  # noqa: S101
        self._traffic.begin(parcel)
        if parcel.roots:
            self._widen(parcel.roots)
        if not self._send_on((parcel, parcel.number), [], parcel.parts):
            self._traffic.complete(parcel)

    def _time_between_looks(self, *, idle: bool) -> float:
        if not idle:
            return LOOK
        waits_for_links = self._recorder.pending == 0 and self._idle_since is None
        return NOTIFIED_LOOK if self._is_notified and waits_for_links else IDLE_LOOK

    def _has_nothing_to_do(self) -> bool:
        """Nothing to fetch now: no URL is pending, or none at this depth, or none within the limit."""
        recorder, levels = self._recorder, self._recorder.levels
        if self._tickets or recorder.unsaved or (self._traffic is not None and self._traffic.unanswered):
            return False
        if recorder.pending == 0:
            return True
        if recorder.in_flight():
            return False
        lowest = levels.lowest
        too_deep = levels.current is not None and lowest is not None and lowest > levels.current
        return too_deep or recorder.allowance == 0

    def _give_up_slot(self, *, idle: bool, wanted: bool, now: float) -> None:
        if not idle or not wanted:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= PATIENCE:
            self._gives_up = True

    async def _has_come_to_rest(self, arrived: bool, now: float) -> bool:
        """The crawl ends before all URLs were fetched: first all shards stop to fetch, then each takes in the rest."""
        traffic, recorder = self._traffic, self._recorder
        assert traffic is not None  # noqa: S101
        self._ending_since = self._ending_since or now
        if not traffic.quiet:
            await recorder.save(idle=True)  # this tells the fetchers to start no more requests
            if not recorder.in_flight() or now - self._ending_since > LAST_PAGES:
                traffic.quiet = True
                await recorder.save(idle=True)
            return False
        if arrived or self._tickets or traffic.unanswered or not traffic.outlook.all_quiet:
            return False
        await recorder.save()
        return True

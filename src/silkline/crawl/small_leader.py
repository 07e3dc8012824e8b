"""The leader of a job with one fetcher, in this process: no children, no parsers, no links.

Like the leader of a crawl, it writes checkpoints, reads the ledger for the fetcher, and ends when nothing is queued.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from silkline.crawl.attempt_loop import AttemptLoop
from silkline.crawl.booking_batches import BookingBatches
from silkline.crawl.crawl_log import CrawlLog
from silkline.crawl.fetcher import Fetcher
from silkline.crawl.fetcher_setup import open_client
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.messages import (
    Assigned,
    Batch,
    Book,
    Committed,
    Drain,
    FetcherStatus,
    Go,
    Granted,
    Live,
    Refilled,
)
from silkline.crawl.plan import Plan
from silkline.crawl.purpose import Purpose
from silkline.crawl.recorder import Delivery, Recorder
from silkline.crawl.seed_verdict import try_failed_seeds_again
from silkline.model.host_wait import Wait
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import QueuedUrl

_BEAT: Final = 0.1
_REPORT: Final = 5.0


class SmallJob(Purpose, Protocol):
    """What a kind does besides its fetcher."""

    @property
    def over(self) -> bool:
        """The job has enough, even if URLs are still queued."""
        ...

    async def begin(self, fetcher: Fetcher) -> None:
        """Record the first URLs of the job, if there are none yet."""
        ...

    async def search(self) -> None:
        """Find more URLs while the first ones are requested. The job is not finished before, unless it is `over`."""
        ...

    async def select(self, rows: list[QueuedUrl]) -> list[QueuedUrl]:
        """The queued URLs that are to be requested. The others have been settled."""
        ...


class SmallLeader:
    """Implements `LeaderInbox`. Must be created inside an event loop. One attempt of a job; `close` it at the end."""

    def __init__(self, context: Context[object], plan: Plan, reader: GuardedReader) -> None:
        self._context = context
        self._plan = plan
        self._reader = reader
        self._client = open_client(plan)
        self._loop = asyncio.get_running_loop()
        self.recorder = Recorder(context.progress, plan, context.log)
        self._bookings = BookingBatches(context.progress, plan, context.log)
        self._fetcher: Fetcher | None = None
        self._job: SmallJob
        self._begun = False
        self._searched = False
        self._drained = False
        self._settled = False
        self._attempt = AttemptLoop()
        self._waits: list[Wait] = []
        self._live = Live()
        self._story = CrawlLog(context.log, plan, self.recorder, depths=False)

    async def run(self, job: SmallJob) -> End | None:
        """Run until nothing is left, the job has enough, or an order arrives. Returns the order if work is left."""
        self._attempt.catch_errors()
        recorder = self.recorder
        recorder.on_saved, recorder.live, recorder.in_flight = self._saved, self._show, self._in_flight
        await recorder.ask(try_failed_seeds_again, self._context.progress)
        await recorder.open()
        self._job = job
        self._fetcher = Fetcher(0, self._plan, self._client, self._reader, self, job)
        self._attempt.hear(self._context.control)
        self._attempt.spawn(self._begin())
        await self._watch()
        await self._settle_down()
        return self._attempt.order if recorder.pending or not self._searched else None

    def close(self) -> None:
        self._attempt.close()
        if self._fetcher is not None:
            self._fetcher.close()
        else:
            self._reader.close()
            self._client.close()
        self._client.resolver.close()
        self._bookings.close(quiet=self._settled)
        self.recorder.close()

    # Messages of the fetcher.

    def hand_in(self, batch: Batch) -> None:
        recorder = self.recorder
        self._live = batch.live
        recorder.count_bytes(batch.wire_bytes)
        recorder.settle(batch.settled)
        if batch.found:
            self._tell(Assigned(batch.seq, recorder.append_columns(batch.found)))
        recorder.deliver((self, batch.seq), batch.pages)
        if recorder.due or not recorder.pending or self._job.over:
            self._attempt.wake()

    def show(self, status: FetcherStatus) -> None:
        self._waits, self._live = status.waits, status.live
        self._story.robots(status.robots)

    def ask_for_more(self, cursor: int, foreign: bool, /) -> None:
        self._attempt.spawn(self._refill(cursor, foreign))

    def book(self, hosts: Book) -> None:
        self._bookings.ask(hosts, self._tell)

    def drained(self) -> None:
        self._drained = True
        self._attempt.wake()

    # Messages to the fetcher.

    def _tell(self, message: Assigned | Committed | Drain | Go | Granted | Refilled) -> None:
        if self._fetcher is not None:
            self._fetcher.receive(message)

    async def _begin(self) -> None:
        if self._fetcher is not None:
            await self._job.begin(self._fetcher)
        self._begun = True
        self._tell(Go())
        await self._job.search()
        self._searched = True
        self._attempt.wake()

    async def _refill(self, cursor: int, foreign: bool, /) -> None:
        """Read more of the ledger. Write a checkpoint first, so that the ledger has everything."""
        recorder = self.recorder
        await recorder.save()
        wanted = self._plan.tuning.refill_rows
        rows, read_to = await recorder.ask(recorder.read_queued, cursor, wanted, foreign, None)
        rows = await self._job.select(rows)
        self._tell(Refilled(rows, read_to, read_to >= recorder.next_id - 1))
        self._attempt.wake()

    def _saved(self, deliveries: list[Delivery]) -> None:
        self._tell(Committed([seq for who, seq in deliveries if who is self], None))

    # The main loop of a job.

    async def _watch(self) -> None:
        """Write checkpoints until the job is finished."""
        recorder, reported = self.recorder, self._loop.time()
        while self._attempt.order is None:
            self._attempt.check()
            if (self._begun and self._job.over) or (self._searched and not recorder.pending):
                return
            if recorder.due:
                await recorder.save()
            elif recorder.since_saved >= self._plan.tuning.idle_seconds:
                await recorder.save(idle=True)  # there is no news: show what the job waits for
            else:
                if self._story.look():
                    await self._story.progress(self._waits, self._in_flight())
                if self._loop.time() - reported > _REPORT:
                    reported = self._loop.time()
                    self._context.progress.report()
                await self._attempt.pause(_BEAT)

    async def _settle_down(self) -> None:
        """Wait a short time for requests in flight, and make their results durable."""
        if self._begun:
            self._tell(Drain())
            deadline = self._loop.time() + self._plan.tuning.drain_seconds + 0.3
            while self._loop.time() < deadline and not self._drained:
                await self._attempt.pause(_BEAT)
        self._settled = True
        await self.recorder.save(idle=True)  # now nothing is in flight, and nothing waits
        self._attempt.check()

    # Status for people.

    def _in_flight(self) -> int:
        return 0 if self._settled or self._fetcher is None else min(self._fetcher.in_flight, self.recorder.pending)

    def _show(self) -> dict[str, object]:
        if self._settled:
            return {"in_flight": [], "waits": []}
        return {"in_flight": list(self._live.urls), "waits": [wait._asdict() for wait in self._waits]}

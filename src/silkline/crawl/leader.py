"""The leader: it is fetcher 0, starts the other fetchers and the parsers, passes messages between them and the
recorder, replaces processes that died, and decides when the crawl is finished.

The end is detected in one place. The recorder counts every URL that is queued or in flight anywhere as pending, until
it has its end. So the crawl is finished when nothing is pending and no links are in transit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from silkline.crawl.attempt_loop import AttemptLoop
from silkline.crawl.booking_batches import BookingBatches
from silkline.crawl.crawl_log import CrawlLog
from silkline.crawl.fetcher import Fetcher
from silkline.crawl.fetcher_rates import FetcherRates
from silkline.crawl.fetcher_setup import open_client
from silkline.crawl.field_counts import check_fields
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.host_owners import HostOwners
from silkline.crawl.host_status import most_waiting
from silkline.crawl.link_acks import LinkAcks
from silkline.crawl.local_inbox import LocalInbox
from silkline.crawl.messages import (
    Assigned,
    Batch,
    Blamed,
    Book,
    Committed,
    Drain,
    Drained,
    FetcherStatus,
    FoundUrl,
    FoundUrls,
    FromFetcher,
    Go,
    Incoming,
    Known,
    KnownBudgets,
    Level,
    Live,
    LostParser,
    PageOutcome,
    Refill,
    Refilled,
    Roots,
    StartFetcher,
)
from silkline.crawl.plan import Plan
from silkline.crawl.process_tree import LocalSeat, ProcessTree, Seat
from silkline.crawl.recorder import Delivery, Recorder
from silkline.crawl.scope import Scope
from silkline.crawl.seed_verdict import check_seeds, try_failed_seeds_again
from silkline.crawl.seen import Seen, seeded_digests
from silkline.crawl.shard_part import ShardPart
from silkline.crawl.shard_traffic import OpenParcel
from silkline.crawl.suspects import Suspects
from silkline.crawl.traps import CLOSE_LOOK, ROW_BYTES
from silkline.errors import DiskFull, StoreError
from silkline.metrics.instruments import LINK_BATCHES
from silkline.model.host_wait import Wait
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import FOREIGN, QUEUED
from silkline.model.url import canonical, host_of, url_key
from silkline.reading_marks import Mark, ReadingMarks
from silkline.store import blames, shards, urls

OVER_LIMIT = "over_limit"
OVER_DURATION = "over_duration"
INDEX_FROM = 500_000
"""With this many URLs, a scan for one of them costs 0.05 s of CPU; an index costs 1.8 µs for each URL."""
MOST_TO_ADD_UP = 1_000_000
"""Adding up the rows that each host caused takes 5 s for half a million URLs. Above this, these budgets start from
zero."""
_BEAT = 0.05
_REPORT = 5.0
_MOST_DEATHS = 20
_LOOK_AT_MARKS = 0.25


class Leader:
    """One attempt of a crawl: from the current state of the ledger until it is finished, or an order stops it."""

    def __init__(self, context: Context[object], plan: Plan, seeds: list[str]) -> None:
        self._context = context
        self._plan = plan
        self._seeds = seeds
        self._log = context.log
        self._loop = asyncio.get_running_loop()
        self._recorder = Recorder(context.progress, plan, context.log)
        self._bookings = BookingBatches(context.progress, plan, context.log)
        self._story = CrawlLog(context.log, plan, self._recorder)
        self._tickets = LinkAcks()
        self._owners = HostOwners(plan.fetchers, plan.shard, plan.shards)
        self._seats: list[Seat] = []
        self._live: list[Live] = [Live()] * plan.fetchers
        self._waits: list[list[Wait]] = [[]] * plan.fetchers
        self._settled = False
        self._attempt = AttemptLoop()
        self._drained: set[int] = set()
        self._started_at = self._loop.time()
        self._stored_at_start = 0
        self._rates = FetcherRates(plan.fetchers, self._started_at)
        self._marks = ReadingMarks.open(context.marks)
        self._suspects = Suspects(everything=not context.marks)
        self._looked_at_marks = self._started_at
        self._tree = ProcessTree(
            plan,
            self._marks,
            self.heard,
            self._fetcher_died,
            self._blame,
            self._start_message,
            self._log.warning,
        )
        self._deaths = [0] * plan.fetchers
        self._shard = ShardPart(self._recorder, self._tickets, self._send_on, self._widen)

    async def run(self) -> End | None:
        """Crawl until finished. Returns the order that stopped the crawl. None: completed."""
        self._attempt.catch_errors()
        recorder = self._recorder
        recorder.on_saved, recorder.live, recorder.in_flight = self._saved, self._show, self._in_flight
        self._story.begin(self._seeds)
        try:
            if recorder.traffic is None and await recorder.ask(try_failed_seeds_again, self._context.progress):
                self._log.info("nothing was stored so far: the failed seeds are retried")
            await recorder.open()
            self._stored_at_start = recorder.stored
            self._suspects.learn(await recorder.ask(blames.listed, self._database, self._context.progress.job.id))
            await self._plant_seeds()
            await self._start()
            self._story.started()
            self._attempt.hear(self._context.control)
            if recorder.traffic is not None:
                self._attempt.hear_of_links(self._context.control, self._shard.look_soon)
            reason = await self._watch()
            await self._settle_down()
            self._shard.check_idle()
            if self._attempt.order is None:
                await self._complete(reason)
            await self._summarize()
            if self._attempt.order is None and recorder.traffic is None:
                await recorder.ask(check_seeds, self._context.progress, self._log)
                check_fields(self._plan, recorder.fields, self._log)
            return self._attempt.order
        finally:
            await self._close()

    @property
    def _database(self) -> Any:
        return self._context.progress.database

    # Start.

    async def _plant_seeds(self) -> None:
        if self._recorder.known:
            return
        scope, seen = Scope(self._plan), Seen(self._plan.seen_seed)
        found = []
        for url in filter(None, map(canonical, self._seeds)):
            if self._owners.owner_of(host_of(url)) >= 0 and seen.add(url):
                reason = scope.judge(url, host_of(url), 0)
                state = QUEUED if reason is None else "skipped"
                found.append(FoundUrl(url_key(url), url, host_of(url), 0, state, reason, None, None, "seed"))
        self._recorder.append(found)
        await self._recorder.save(idle=self._recorder.traffic is not None)  # a shard tells that it has no seeds

    async def _start(self) -> None:
        inbox = LocalInbox(self.heard)
        reader = GuardedReader(
            self._plan,
            self._marks,
            pool=self._tree.pool,
            suspects=self._suspects,
            isolate_all=not self._context.marks,
        )
        own = LocalSeat(Fetcher(0, self._plan, open_client(self._plan), reader, inbox))
        inbox.seat = own
        self._seats = [own]
        self._seats += await self._tree.start()
        await self._brief(self._seats)

    async def _brief(self, seats: Sequence[Seat]) -> None:
        """Send fetchers the state they need, and start them."""
        job_id = self._context.progress.job.id
        owner_of = None if self._plan.fetchers == 1 else self._owners.owner_of
        chunks = urls.every(self._database, job_id)
        indices, seed = [seat.index for seat in seats], self._plan.seen_seed
        while (known := await self._recorder.ask(_known_of, chunks, owner_of, indices, seed)) is not None:
            for seat, digests in zip(seats, known, strict=True):
                seat.send(Known(*digests))
        small = self._plan.tuning.small_bytes
        spent = await self._recorder.ask(urls.spent, self._database, job_id, ROW_BYTES, CLOSE_LOOK, small)
        by_source: list[tuple[str, int]] = []
        if self._recorder.known <= MOST_TO_ADD_UP:
            by_source = await self._recorder.ask(urls.bytes_by_source, self._database, job_id, ROW_BYTES, small)
        for seat in seats:
            own = [row for row in spent if owner_of is None or owner_of(row[0]) == seat.index]
            seat.send(KnownBudgets(own, by_source))
        roots = self._roots() if self._plan.scoped else iter(())
        while (some := await self._recorder.ask(next, roots, None)) is not None:
            for seat in seats:
                seat.send(Roots(some))
        for seat in seats:
            seat.ready = True
            if self._recorder.levels.current is not None:
                seat.send(Level(self._recorder.levels.current, self._recorder.levels.sure()))
            if self._recorder.traffic is not None:
                seat.send(Committed([], self._shard.allowance))
            seat.send(Go())
            for ticket in self._tickets.unanswered(seat.index):
                seat.send(Incoming(ticket, self._tickets.links(ticket)))

    def _roots(self) -> Iterator[list[str]]:
        """Seeds and the targets of their redirects, those of all shards."""
        job = self._context.progress.job
        if job.shard is None:
            yield from urls.roots(self._database, job.id)
            return
        yield list(filter(None, map(canonical, self._seeds)))
        for id in shards.ids_of(self._database, str(job.parent_id)):
            yield from urls.roots(self._database, id)

    def _fetcher_died(self, seat: Seat) -> None:
        seat.ready = False
        self._live[seat.index], self._waits[seat.index] = Live(), []
        self._tickets.disown(seat)
        self._recorder.disown(seat)
        if self._attempt.order is None:
            self._attempt.spawn(self._replace(seat))

    async def _replace(self, seat: Seat) -> None:
        """Start a new fetcher in place of a dead one, with the state from the ledger."""
        if await seat.filled_disk():
            raise DiskFull("there is no space left in the data directory")
        self._deaths[seat.index] += not seat.blamed
        deaths = self._deaths[seat.index]
        self._log.warning("fetcher %d died; starting another", seat.index)
        if deaths > _MOST_DEATHS:
            raise RuntimeError(f"fetcher {seat.index} died {deaths} times in a row before anything was saved")
        await asyncio.sleep(min(0.05 * 2**deaths, 5.0) if deaths else 0)
        another = await self._tree.start_fetcher(seat.index)
        self._seats[seat.index] = another
        await self._recorder.save()  # after the seat is set: then it misses nothing between the ledger and its messages
        await self._brief([another])

    # Inputs that killed a process.

    def _start_message(self, index: int, slot: int) -> StartFetcher:
        return StartFetcher(index, self._plan, slot, self._suspects.listed(), self._suspects.everything)

    def _blame(self, mark: Mark) -> None:
        """A fetcher or parser died while it read this input. From now on all processes read it in isolation."""
        blamed = self._suspects.blame(mark)
        self._log.warning("a process died while it read %s; it is read in isolation from now on", mark)
        for seat in self._seats:
            seat.send(Blamed([blamed]))
        self._attempt.spawn(self._store_blame(blamed))

    async def _store_blame(self, blamed: tuple[str, int]) -> None:
        """Store it for the next attempt. If this fails, the next attempt only loses one more process."""
        with contextlib.suppress(StoreError):
            await self._recorder.ask(blames.add, self._database, self._context.progress.job, [blamed])

    def _look_at_marks(self) -> None:
        now = self._loop.time()
        if now - self._looked_at_marks >= _LOOK_AT_MARKS:
            self._looked_at_marks = now
            self._tree.end_overdue(self._plan.tuning.read_seconds)

    # Messages of fetchers.

    def heard(self, seat: Seat, message: FromFetcher) -> None:
        if isinstance(message, Batch):
            self._take(seat, message)
        elif isinstance(message, FetcherStatus):
            self._waits[seat.index] = message.waits
            self._live[seat.index] = message.live
            self._story.robots(message.robots)
        elif isinstance(message, Refill):
            self._attempt.spawn(self._refill(seat, message))
        elif isinstance(message, Book):
            self._bookings.ask(message, seat.send)
        elif isinstance(message, LostParser):
            self._tree.end_parser(message.slot)
        elif isinstance(message, Drained):
            self._drained.add(seat.index)
            self._attempt.wake()

    def _take(self, seat: Seat, batch: Batch) -> None:
        recorder = self._recorder
        delivery = (seat, batch.seq)
        self._live[seat.index] = batch.live
        recorder.count_bytes(batch.wire_bytes)
        self._rates.add(seat.index, len(batch.pages))
        if batch.not_stored and recorder.count_not_stored(seat.index, batch.not_stored):
            self._log.warning("a host has too many URLs, or links to too many: further URLs are counted, not stored")
        recorder.settle(batch.settled)
        if batch.found:
            first = recorder.append_columns(batch.found)
            self._spread_roots(batch.found)
            seat.send(Assigned(batch.seq, first))
        for ticket in batch.answers:
            complete = self._tickets.answered(ticket)
            if complete is not None and isinstance(complete.delivery[0], OpenParcel):
                self._shard.complete(complete.delivery[0])
            elif complete is not None:
                recorder.deliver(complete.delivery, complete.pages)
        if not self._send_on(delivery, batch.pages, self._shard.send(batch.foreign)):
            recorder.deliver(delivery, batch.pages)
        self._rise()
        if recorder.due or self._nothing_left():
            self._attempt.wake()

    def _send_on(self, delivery: Delivery, pages: list[PageOutcome], parts: list[tuple[int, bytes]]) -> bool:
        """Send links to the fetchers that own their hosts. Returns whether there are any: then the pages wait."""
        for ticket, owner in self._tickets.issue(delivery, pages, parts):
            if self._seats[owner].ready:
                self._seats[owner].send(Incoming(ticket, self._tickets.links(ticket)))
        return bool(parts)

    def _rise(self) -> None:
        """Allow the next depth when the current one is finished."""
        levels = self._recorder.levels
        if levels.advance(self._loop.time()) and levels.current is not None:
            for seat in self._seats:
                seat.send(Level(levels.current, levels.sure()))

    def _spread_roots(self, found: FoundUrls) -> None:
        """Redirect targets of seeds widen the scope. Tell all fetchers before they see links of these pages."""
        roots = found.roots()
        if roots:
            self._widen(roots)
            self._shard.send_roots(roots)

    def _widen(self, roots: list[str]) -> None:
        for seat in self._seats:
            seat.send(Roots(roots))

    async def _refill(self, seat: Seat, asked: Refill) -> None:
        """Read more of the ledger for a fetcher. Write a checkpoint first, so that the ledger has everything."""
        await self._recorder.save()
        wanted = self._plan.tuning.refill_rows
        owner_of = self._owners.owner_of
        mine = None if self._plan.fetchers == 1 else lambda host: owner_of(host) == seat.index
        cursor, read = asked.cursor, self._recorder.read_queued
        rows, read_to = await self._recorder.ask(read, cursor, wanted, asked.foreign, mine)
        seat.send(Refilled(rows, read_to, read_to >= self._recorder.next_id - 1))

    def _saved(self, deliveries: list[Delivery]) -> None:
        LINK_BATCHES.set(len(self._tickets), "fetchers")
        by_seat: dict[Seat, list[int]] = {}
        for seat, seq in deliveries:
            by_seat.setdefault(seat, []).append(seq)
        for seat, seqs in by_seat.items():
            self._deaths[seat.index] = 0
            seat.send(Committed(seqs, self._shard.allowance))
        self._shard.tell_allowance(self._seats)

    # The main loop of a crawl.

    async def _watch(self) -> str | None:
        """Write checkpoints until the crawl is finished. Returns the reason if URLs are left over."""
        recorder, reported = self._recorder, self._loop.time()
        while self._attempt.order is None:
            self._rise()
            self._look_at_marks()
            self._attempt.check()
            if await self._shard.is_over():
                return self._shard.reason
            if recorder.traffic is None and (over := self._over()) is not None:
                return over or None
            if recorder.due or (recorder.unsaved and self._starved()):
                await recorder.save()
                continue
            if recorder.since_saved >= self._plan.tuning.idle_seconds:
                await recorder.save(idle=True)  # there is no news: show what the crawl waits for
                continue
            if self._story.look():
                await self._story.progress(self._most_waiting(), self._in_flight())
            if self._loop.time() - reported > _REPORT:
                reported = self._loop.time()
                self._context.progress.report()
            await self._attempt.pause(_BEAT)
        return None

    def _over(self) -> str | None:
        """Whether a whole crawl is over: the reason if URLs are left over, else an empty string. None: it goes on."""
        if self._nothing_left():
            return ""
        if self._recorder.allowance == 0:
            return OVER_LIMIT
        return OVER_DURATION if self._out_of_time() else None

    def _nothing_left(self) -> bool:
        return self._recorder.pending == 0 and not self._tickets

    def _starved(self) -> bool:
        """Near the limit, fetchers wait to be told how many pages are left."""
        allowance = self._recorder.allowance
        return allowance is not None and allowance <= 8 * self._plan.fetchers

    def _out_of_time(self) -> bool:
        most = self._plan.max_duration
        return most is not None and self._recorder.seconds + self._recorder.since_saved >= most

    # The end.

    async def _settle_down(self) -> None:
        """Wait a short time for requests in flight, and make their results durable."""
        for seat in self._seats:
            if seat.ready:
                seat.send(Drain())
        deadline = self._loop.time() + self._plan.tuning.drain_seconds + 0.3
        while self._loop.time() < deadline and not self._quiet():
            await self._attempt.pause(_BEAT)
        self._settled = True
        await self._recorder.save(idle=True)  # now nothing is in flight, and nothing waits

    async def _complete(self, reason: str | None) -> None:
        """No more pages will arrive: settle the remaining URLs, and create the URL index of a large crawl."""
        job = self._context.progress.job
        if reason is not None:
            await self._recorder.ask(urls.skip_queued, self._database, job, reason)
        if self._recorder.known > INDEX_FROM:
            await self._recorder.ask(urls.index, self._database, job.id)

    async def _summarize(self) -> None:
        recorder, job = self._recorder, self._context.progress.job
        counts = await recorder.ask(urls.counts, self._database, job.id)
        reasons: list[tuple[str, str, int]] = []
        if recorder.known <= INDEX_FROM:
            reasons = await recorder.ask(urls.reasons, self._database, job.id)
        self._story.end(counts, reasons, self._attempt.order)

    def _quiet(self) -> bool:
        return not self._tickets and all(not seat.ready or seat.index in self._drained for seat in self._seats)

    async def _close(self) -> None:
        self._attempt.close()
        for seat in self._seats:
            seat.close()
        await self._tree.close()
        self._bookings.close(quiet=self._settled)
        self._recorder.close()

    # Status for people.

    def _in_flight(self) -> int:
        return 0 if self._settled else min(sum(live.in_flight for live in self._live), self._recorder.pending)

    def _most_waiting(self) -> list[Wait]:
        return [] if self._settled else most_waiting([wait for waits in self._waits for wait in waits])

    def _show(self) -> dict[str, object]:
        seconds = max(self._loop.time() - self._started_at, 0.001)
        waits, rates = self._most_waiting(), self._rates.rates(self._loop.time())
        flying = [] if self._settled else [url for live in self._live for url in live.urls]
        return {
            "rate": round((self._recorder.stored - self._stored_at_start) / seconds, 2),
            "rates": [[seat.pid, rate] for seat, rate in zip(self._seats, rates, strict=False)],
            "in_flight": flying[:20],
            "waits": [wait._asdict() for wait in waits],
            "reasons": dict(Counter(self._recorder.reasons).most_common(20)),
            "not_stored": self._recorder.not_stored,
            "fetchers": self._plan.fetchers,
            "parsers": self._plan.parsers,
        }


def _known_of(
    chunks: Iterator[list[tuple[str, str, str]]], owner_of: Any, indices: list[int], seed: int
) -> list[tuple[bytes, bytes]] | None:
    """The digests of the next URLs, for each of these fetchers: first those that their own hosts link to, or seeds.
    None at the end."""
    chunk = next(chunks, None)
    if chunk is None:
        return None
    known: dict[int, tuple[list[str], list[str]]] = {index: ([], []) for index in indices}
    for url, host, via in chunk:
        owner = owner_of(host) if owner_of is not None else indices[0]
        if owner in known:
            known[owner][via == FOREIGN].append(url)
    return [(seeded_digests(own, seed), seeded_digests(foreign, seed)) for own, foreign in known.values()]

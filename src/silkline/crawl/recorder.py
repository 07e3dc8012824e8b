"""The recorder: assigns ids to URLs, keeps the state of the whole crawl, and writes the checkpoints.

The state is kept on the leader's event loop. Only one separate thread uses the database, so a slow disk never blocks a
fetch. All reads from the ledger during the crawl use the same thread. So they are never older than what was reported as
durable before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from silkline.crawl.depth_levels import Levels
from silkline.crawl.field_counts import FieldCounts
from silkline.crawl.html_counts import HtmlCounts
from silkline.crawl.messages import FoundUrl, FoundUrls, PageOutcome
from silkline.crawl.plan import Plan
from silkline.crawl.shard_traffic import ShardTraffic
from silkline.model.kept_html import NewDictionary, NewHtml
from silkline.model.kind import Progress
from silkline.model.ledger import (
    DONE,
    FAILED,
    QUEUED,
    Checkpoint,
    NewResult,
    NewUrls,
    PageLinks,
    QueuedUrl,
    Settled,
    not_stored,
)
from silkline.model.sharding import ShardProgress, ids_before
from silkline.store import pages, urls
from silkline.store.statements import load_all

_REASON = FoundUrl._fields.index("reason")
# The seat of a fetcher (the recorder does not use it) and the number of its batch. None: there is no fetcher to tell.
Delivery = tuple[Any, int]


class Recorder:
    """The state of one crawl since the last checkpoint, and its counters."""

    def __init__(self, progress: Progress, plan: Plan, log: logging.Logger) -> None:
        self._progress = progress
        self._plan = plan
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recorder")
        self._found = NewUrls()
        self._settled: dict[int, Settled] = {}
        self._shorter: dict[int, int] = {}
        """Smaller depths of URLs that may have ended meanwhile."""
        self._results: list[NewResult] = []
        self.unsaved_bytes = 0
        """The length of the results that are not stored yet."""
        self._links: list[PageLinks] = []
        self._deliveries: list[Delivery] = []
        self._bytes = 0
        self._saving = asyncio.Lock()
        self._saved_at = self._loop.time()
        self.first_id = 1 + ids_before(plan.shard or 0)
        self.next_id = self.first_id
        self.pending = 0
        self.stored = 0
        self.seconds = 0.0
        self._not_stored_before = 0
        self._not_stored: Counter[int] = Counter()
        self.fields = FieldCounts([field.name for field in plan.fields])
        self._html: list[NewHtml] = []
        self._dictionaries: list[NewDictionary] = []
        self._html_counts = HtmlCounts()
        self.traffic = ShardTraffic(progress, plan) if plan.shard is not None else None
        self._over: list[tuple[Any, PageOutcome]] = []
        self.levels = Levels(limited=plan.depth is not None, now=self._saved_at, shared=plan.shard is not None)
        self.reasons: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        """The reasons of failed URLs; `reasons` has those of skipped URLs too."""
        self.live: Callable[[], Mapping[str, object]] = dict
        self.in_flight: Callable[[], int] = int
        self.on_saved: Callable[[list[Delivery]], None] = lambda deliveries: None

    async def open(self) -> None:
        """Load the state that the last attempt left."""
        job_id, database = self._progress.job.id, self._progress.database
        load_all(database.dialect)
        pages.prepare()
        counts = await self.ask(urls.counts, database, job_id)
        self.next_id = max(self.first_id, 1 + await self.ask(urls.last_id, database, job_id))
        self.pending = counts.queued + counts.in_flight
        self.stored = counts.done
        self.seconds = counts.seconds
        self._not_stored_before = not_stored(counts)
        self.fields.load(counts.live)
        self._html_counts.load(counts.live)
        if self.traffic is not None:
            await self.ask(self.traffic.load)
        if self._plan.depth is not None:
            for depth, pending in (await self.ask(urls.queued_depths, database, job_id)).items():
                self.levels.add(depth, pending)
        else:
            self.levels.known = not self.known

    async def ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that uses the database in the recorder's thread."""
        return await self._loop.run_in_executor(self._thread, question, *arguments)

    # The state of the crawl.

    def append(self, found: list[FoundUrl]) -> int:
        """Add new URLs, in the order of discovery. Returns the id of the first."""
        return self.append_columns(FoundUrls.of(found))

    def append_columns(self, found: FoundUrls) -> int:
        """The same for a batch of a fetcher."""
        first = self.next_id
        self._found.add(first, found.columns)
        self.next_id = first + len(found)
        if found.reason != [None]:
            self.reasons.update(reason for reason in found.columns[_REASON] if reason is not None)
        for depth, number in found.queued_depths().items():
            self.pending += number
            self.levels.add(depth, number)
        return first

    def settle(self, settled: list[tuple[Settled, int]]) -> None:
        """Record ends without links, and failed tries, each with its depth."""
        for each, depth in settled:
            self._settled[each.id] = each
            if each.depth is not None:
                self._shorter[each.id] = each.depth
                self.levels.move(depth, each.depth)
            if each.state != QUEUED:
                self._end(each, depth)

    def deliver(self, delivery: Delivery, pages: list[PageOutcome]) -> None:
        """Record pages whose links are all recorded. Pages beyond the limit do not count, as if never fetched."""
        for page in pages:
            if page.dictionary is not None:
                self._dictionaries.append(page.dictionary)
            if page.settled.state == DONE:
                if self.allowance == 0:
                    self._over.append((delivery[0], page))
                    continue
                self.stored += 1
            self._deliver(page)
        self._deliveries.append(delivery)

    def deliver_rest(self) -> None:
        """A shard may store more pages: record those that were beyond its share of the limit."""
        while self._over and self.allowance:
            self.stored += 1
            self._deliver(self._over.pop(0)[1])

    def disown(self, seat: Any) -> None:
        """A fetcher died: its pages that do not count yet will be fetched again."""
        self._over = [(owner, page) for owner, page in self._over if owner is not seat]

    def _deliver(self, page: PageOutcome) -> None:
        settled, result, depth, names, tally, html, _ = page
        self._end(settled, depth)
        self._settled[settled.id] = settled
        if settled.state != FAILED:  # it may be retried, and links are stored once for each page
            self._links.append(PageLinks(settled.id, names))
        if result is not None:
            self._results.append(result)
            self.unsaved_bytes += len(result.data) + len(result.final_url)
        if tally:
            self.fields.add(tally)
        if html is not None:
            self._html.append(html)
            self._html_counts.add(html)

    def end(self, settled: Settled, result: NewResult | None = None) -> None:
        """Record the end of a URL that no fetcher requested."""
        self.deliver((None, 0), [PageOutcome(settled, result, 0)])

    def _end(self, settled: Settled, depth: int) -> None:
        self.pending -= 1
        self.levels.end(depth, self._loop.time())
        if settled.reason is not None:
            self.reasons[settled.reason] += 1
            if settled.state == FAILED:
                self.failures[settled.reason] += 1

    def count_not_stored(self, fetcher: int, number: int) -> bool:
        """Record how many URLs a fetcher has only counted since it started. Returns whether they are the first in this
        attempt."""
        first = number > 0 and not self._not_stored
        if number > self._not_stored[fetcher]:
            self._not_stored[fetcher] = number
        return first

    @property
    def not_stored(self) -> int:
        """URLs that were only counted. A lower bound: after a restart the same URLs may be counted again, so this is
        the maximum."""
        return max(self._not_stored_before, self._not_stored.total())

    def count_bytes(self, wire_bytes: int) -> None:
        self._bytes += wire_bytes

    @property
    def allowance(self) -> int | None:
        """Pages that may still be stored."""
        if self.traffic is not None and self.traffic.quiet:
            return 0
        limit = self._plan.limit if self.traffic is None else self.traffic.outlook.allowed
        return None if limit is None else max(0, limit - self.stored)

    @property
    def known(self) -> int:
        """How many URLs the ledger has."""
        return self.next_id - self.first_id

    @property
    def wanted(self) -> int:
        """How many more pages of the limit a shard wants; negative: it returns what it does not need."""
        if self.traffic is None or self.allowance is None:
            return 0
        if self.pending == 0:
            return -1 if self.allowance else 0
        return max(0, self._plan.tuning.checkpoint_pages - self.allowance)

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        tuning = self._plan.tuning
        if self._saving.locked() or not (self._settled or self._found or self._deliveries or self._traffic_waits):
            return False
        return len(self._settled) >= tuning.checkpoint_pages or self.since_saved >= tuning.checkpoint_seconds

    @property
    def since_saved(self) -> float:
        return self._loop.time() - self._saved_at

    @property
    def unsaved(self) -> bool:
        return bool(self._settled or self._found or self._deliveries or self._bytes or self._traffic_waits)

    @property
    def _traffic_waits(self) -> bool:
        return self.traffic is not None and self.traffic.waits

    @property
    def unsaved_results(self) -> int:
        return len(self._results)

    @property
    def unsaved_urls(self) -> int:
        return len(self._found)

    # The checkpoints.

    async def save(self, *, idle: bool = False) -> None:
        """Make everything recorded durable, in one transaction. `idle`: even if only the status for people changed."""
        async with self._saving:
            if self.unsaved or idle:
                await self._save()

    async def _save(self) -> None:
        now = self._loop.time()
        checkpoint = Checkpoint(
            found=self._found,
            settled=self._all_settled(),
            results=self._results,
            links=self._links,
            bytes=self._bytes,
            in_flight=self.in_flight(),
            seconds=now - self._saved_at,
            live={**self.live(), **self.fields.live(), **self._html_counts.live()},
            html=self._html,
            dictionaries=self._dictionaries,
            shard=self._shard_progress(),
        )
        deliveries = self._deliveries
        self._found, self._settled, self._results, self._links = NewUrls(), {}, [], []
        self._deliveries, self._bytes, self.unsaved_bytes = [], 0, 0
        self._html, self._dictionaries = [], []
        self._saved_at = now
        self.seconds += checkpoint.seconds
        await self.ask(self._progress.record, checkpoint)
        if self.traffic is not None and self._plan.limit is not None:
            await self.ask(self.traffic.look)
            self.deliver_rest()
        self.on_saved(deliveries)

    def _all_settled(self) -> list[Settled]:
        settled, shorter = list(self._settled.values()), self._shorter
        self._shorter = {}
        return [each._replace(depth=shorter.get(each.id)) for each in settled] if shorter else settled

    def _shard_progress(self) -> ShardProgress | None:
        if self.traffic is None:
            return None
        return self.traffic.pack(self.levels.lowest if self._plan.depth is not None else None, self.wanted)

    # Reading the ledger.

    def read_queued(
        self, cursor: int, wanted: int, foreign: bool, mine: Callable[[str], bool] | None, /
    ) -> tuple[list[QueuedUrl], int]:
        """Queued URLs of some hosts after an id, own or foreign ones, and how far the ledger was read. Runs in the
        recorder's thread."""
        database, job_id = self._progress.database, self._progress.job.id
        found: list[QueuedUrl] = []
        cursor = max(cursor, self.first_id - 1)
        while len(found) < wanted:
            rows = urls.queued_part(database, job_id, foreign=foreign, after=cursor, wanted=wanted)
            found += rows if mine is None else [row for row in rows if mine(row.host)]
            if len(rows) < wanted:
                return found, max(cursor, urls.last_id(database, job_id), rows[-1].id if rows else 0)
            cursor = rows[-1].id
        return found, cursor

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

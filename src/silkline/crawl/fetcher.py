"""One fetcher: processes the URLs of its own hosts. Connects the parts, and receives messages of the leader.

It owns the queues, politeness clocks, robots rules, seen-set and trap budgets of its hosts. It never uses the database:
its output goes to the leader in batches, and counts when the leader says that it is durable.

- pump.py starts requests, answers.py carries out the decisions of decisions.py, endings.py settles URLs without a page;
- purpose.py decides, for the kind of the job, how a page that was read is used;
- outbox.py collects the output, and `Reporter` (reporter.py) sends it to the leader.

Messages of the leader arrive in `receive`. Each has a method with its name here.
"""

from __future__ import annotations

import asyncio

from silkline.crawl.answers import Answers
from silkline.crawl.discovery import Discovery
from silkline.crawl.endings import Endings
from silkline.crawl.fetcher_gauges import FetcherGauges
from silkline.crawl.frontier import Frontier
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.messages import (
    Assigned,
    Blamed,
    Committed,
    Drain,
    FoundUrl,
    Go,
    Granted,
    Incoming,
    Known,
    KnownBudgets,
    Level,
    Live,
    Refilled,
    Roots,
    ToFetcher,
    links_decoder,
)
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import Plan
from silkline.crawl.pump import Pump
from silkline.crawl.purpose import Purpose
from silkline.crawl.render_queue import RenderQueue
from silkline.crawl.reporter import LeaderInbox, Reporter
from silkline.crawl.robots_notes import RobotsNotes
from silkline.crawl.site_crawl import SiteCrawl
from silkline.crawl.url_queue import Claim, FrontierUrl
from silkline.fetch.client import HttpClient
from silkline.model.ledger import QUEUED, SKIPPED, Settled
from silkline.model.url import host_of


class Fetcher:
    """Must be created inside an event loop. Without a `purpose` it crawls."""

    def __init__(
        self,
        index: int,
        plan: Plan,
        client: HttpClient,
        reader: GuardedReader,
        leader: LeaderInbox,
        purpose: Purpose | None = None,
    ) -> None:
        tuning = plan.tuning
        self._plan = plan
        self._client = client
        self._reader = reader
        self._leader = leader
        self._loop = asyncio.get_running_loop()
        self._gauges = FetcherGauges(self._loop.time())
        self._outbox = Outbox()
        self._frontier = Frontier(plan.pace, window=tuning.window, per_host=tuning.per_host_window)
        self._discovery = Discovery(index, plan, self._outbox)
        self._discovery.on_claim = self._claim
        self._frontier.on_shorter = self._found_shorter
        self._purpose = purpose or SiteCrawl(index, plan, self._discovery)
        notes = RobotsNotes()
        self._reporter = Reporter(tuning, leader, self._outbox, self._frontier, self._live, notes)
        self._endings = Endings(tuning, self._frontier, self._outbox, self._purpose, self._reporter.flush_soon)
        render_queue = RenderQueue(plan, client) if plan.rendering is not None else None
        parts = (self._frontier, self._outbox, self._endings)
        self._answers = Answers(plan, reader, render_queue, *parts, self._purpose, self._gauges, self._after)
        ask = leader.ask_for_more
        self._pump = Pump(
            plan, client, reader, *parts, self._answers, self._purpose, ask, self._after, notes.add, leader.book
        )
        self.gate = self._pump.gate
        self._links_in = links_decoder()
        self._running = False
        self._draining = False

    @property
    def in_flight(self) -> int:
        return self._pump.in_flight + self._answers.under_way

    def add(self, found: list[FoundUrl]) -> None:
        """Add URLs that the purpose of the job found. They are fetched when they have ids. They are sent to the leader
        at once: it must not believe that nothing is left."""
        self._outbox.found += found
        self._reporter.flush()

    def next_at(self, host: str) -> float:
        """When the clock of a host allows its next request."""
        known = self._frontier.hosts.get(host)
        return known.clock.next_at if known is not None else 0.0

    def close(self) -> None:
        self._running = False
        self._pump.close()
        self._reporter.close()
        self._answers.close_screen()
        self._purpose.close()
        self._gauges.close()
        self._reader.close()
        self._client.close()

    # Messages of the leader.

    def receive(self, message: ToFetcher) -> None:
        """Process a message."""
        match message:
            case Committed():
                self._committed(message)
            case Assigned():
                self._assigned(message)
            case Incoming():
                self._incoming(message)
            case Refilled():
                self._refilled(message)
            case Granted():
                self.gate.bookings.granted(message)
            case Known():
                self._discovery.know(message.digests, message.foreign)
            case KnownBudgets():
                self._discovery.know_budgets(message)
            case Roots():
                self._discovery.add_roots(message.urls)
            case Level():
                self._level(message)
            case Go():
                self._go()
            case Drain():
                self._drain()
            case Blamed():
                self._reader.suspects.learn(message.inputs)
            case _:
                raise TypeError(f"a fetcher cannot process the message {type(message).__name__}")

    def _go(self) -> None:
        """All needed state was received: start with the URLs of the ledger."""
        self._running = True
        self._frontier.read_ledger()
        self._pump.start()
        self._reporter.look_on(self._pump.look_after_waits)

    def _assigned(self, message: Assigned) -> None:
        """New URLs of ours have ids: they may be fetched."""
        now = self._loop.time()
        offer = self._frontier.offer
        for id, found in enumerate(self._outbox.assigned(message.seq), message.first_id):
            if found.state == QUEUED:
                chain = found.chain or ""
                offer(found.host, FrontierUrl(found.depth, id, found.url, found.depth, 0, chain, found.found_via), now)
        self._pump.soon()

    def _committed(self, message: Committed) -> None:
        """Batches that we sent are durable."""
        for seq in message.seqs:
            ids, elsewhere = self._outbox.committed(seq)
            self._frontier.held.difference_update(ids)
            if elsewhere:
                self._discovery.arrived(elsewhere)
        if message.allowance is not None:
            self._pump.allowance = -(-message.allowance // self._plan.fetchers)
        idle = self._frontier.drop_idle(self._plan.tuning.idle_hosts, self._loop.time())
        if idle:
            self.gate.forget(idle)
            self._discovery.forget_hosts(idle)
        self._answers.go_on()
        self._pump.soon()

    def _incoming(self, message: Incoming) -> None:
        """Links to our hosts, found by another fetcher."""
        for links in self._links_in(message.links):
            self._discovery.ours(links.urls, links)
        self._outbox.answers.append(message.ticket)
        self._reporter.flush_next()  # pages wait for this answer before they count

    def _refilled(self, message: Refilled) -> None:
        """More queued URLs from the ledger."""
        now = self._loop.time()
        for row in message.rows:
            entry = FrontierUrl(row.depth, row.id, row.url, row.depth, row.attempts, row.chain or "", row.found_via)
            if row.found_via == "seed" and (reason := self._discovery.refuses_seed(row.url, row.host)):
                self._refuse(entry, reason)
            else:
                self._frontier.offer(row.host, entry, now)
        self._pump.refilled(message.cursor, end=message.end)

    def _refuse(self, entry: FrontierUrl, reason: str) -> None:
        """Skip a seed from a file that the rules of the crawl exclude."""
        if entry.id not in self._frontier.held:
            self._frontier.held.add(entry.id)
            self._endings.end(entry, SKIPPED, reason, None)

    def _level(self, message: Level) -> None:
        """Fetch URLs down to this depth."""
        self._discovery.at_level(message.sure)
        self._frontier.set_level(message.depth, self._loop.time(), message.sure)
        self._pump.soon()

    def _drain(self) -> None:
        """Start no more requests. Report `drained` when the requests in flight have ended, or at the time limit."""
        self._draining = True
        self._pump.stop()
        self._loop.call_later(self._plan.tuning.drain_seconds, self._cut_off)
        self._maybe_drained()

    # Callbacks of the parts.

    def _claim(self, url: str, claim: Claim) -> None:
        """The host of a URL links to it. So far only other hosts did."""
        self._frontier.claim(host_of(url), url, claim, self._loop.time())

    def _found_shorter(self, entry: FrontierUrl, before: int) -> None:
        """There is a shorter path to a queued URL: the ledger gets its depth."""
        self._outbox.settle(Settled(entry.id, QUEUED, attempts=entry.attempts, depth=entry.depth), before)
        self._reporter.flush_soon()

    def _after(self) -> None:
        """A URL was finished: send it to the leader soon, and start more requests if there is room."""
        self._reporter.flush_soon()
        self._pump.soon()
        if self._draining:
            self._maybe_drained()

    def _live(self) -> Live:
        urls = self._pump.urls(10) + self._answers.shown_urls(10)
        outbox = self._outbox
        self._gauges.show(
            self._loop.time(),
            in_flight=self.in_flight,
            frontier=self._frontier.size,
            unsaved=outbox.unsaved,
            unsaved_bytes=outbox.unsaved_bytes,
            parsers=self._reader.at_parsers,
        )
        return Live(self.in_flight, self._frontier.size, urls)

    def _cut_off(self) -> None:
        """The time limit of the drain: URLs that are not finished stay queued in the ledger."""
        self._pump.cut_off()
        self._answers.cut_off()
        self._maybe_drained()

    def _maybe_drained(self) -> None:
        if self._running and not self.in_flight:
            self._running = False
            self._answers.close_screen()
            self._reporter.close()
            self._reporter.flush()
            self._leader.drained()

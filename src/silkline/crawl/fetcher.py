"""One fetcher: an event loop that takes URLs of its own hosts from its frontier, fetches and reads them, and reports.

It owns the queues, politeness clocks, robots rules, seen-set and trap budgets of its hosts. It never touches the
database: what it comes to goes to the leader in batches, and counts once the leader says that it is durable.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from itertools import islice
from typing import Final, Protocol

from silkline.crawl.discovery import Discovery
from silkline.crawl.frontier import Frontier, FrontierUrl, HostQueue
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.host_gate import Introductions
from silkline.crawl.host_status import Lookout
from silkline.crawl.messages import Assigned, Batch, Committed, Incoming, Links, Live, Refilled, links_decoder
from silkline.crawl.outbox import Outbox
from silkline.crawl.outcomes import body_of, page_of, redirect_of, storable, wrong_redirect
from silkline.crawl.plan import Plan
from silkline.crawl.politeness import retry_delay
from silkline.crawl.reading import Reading
from silkline.crawl.render_queue import Screen
from silkline.crawl.robots import unreachable
from silkline.crawl.sitemap_limits import OVER_LIMIT, SITEMAP_VIAS
from silkline.crawl.sitemaps import Sitemaps
from silkline.fetch.client import Exchange, HttpClient
from silkline.fetch.robots import Robots
from silkline.model import fetched as reasons
from silkline.model import wait as waiting
from silkline.model.fetched import HOST_UNAVAILABLE, Fetched, Request, is_temporary, retry_after
from silkline.model.ledger import FAILED, QUEUED, SKIPPED, Settled
from silkline.model.url import canonical
from silkline.model.wait import Wait
from silkline.warc_files import open_archive

ROBOTS: Final = "robots"
ROBOTS_UNAVAILABLE: Final = "robots_unavailable"
_REFUSALS: Final = frozenset({"http_429", "http_503"})


class Desk(Protocol):
    """The leader, as a fetcher sees it."""

    def hand_in(self, batch: Batch) -> None: ...
    def show(self, waits: list[Wait], live: Live) -> None: ...
    def ask_for_more(self, cursor: int) -> None: ...
    def drained(self) -> None: ...


class Fetcher:
    """The way of a URL through one fetcher."""

    def __init__(self, index: int, plan: Plan, client: HttpClient, reader: GuardedReader, desk: Desk) -> None:
        tuning = plan.tuning
        self._plan = plan
        self._tuning = tuning
        self._client = client
        self.reader = reader
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox()
        self.discovery = Discovery(index, plan, self._outbox)
        self._sitemaps = Sitemaps(plan, self.discovery)
        self.frontier = Frontier(plan.pace, window=tuning.window, per_host=tuning.per_host_window)
        self._introductions = Introductions(plan, client, self.frontier, reader, self._introduced)
        self._links_decoder = links_decoder()
        self._archive = open_archive(plan.archive, index)
        self._screen = Screen(plan, client) if plan.rendering is not None else None
        self._flying: dict[int, tuple[FrontierUrl, float, Exchange | None]] = {}
        self._reading: dict[int, tuple[HostQueue, FrontierUrl, Fetched]] = {}
        self._gave_up: dict[str, str] = {}
        self._allowance = plan.limit
        self._running = False
        self._draining = False
        self._pump_soon: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._flush_later: asyncio.Handle | None = None
        self._asked = False
        self._lookout = Lookout(self.frontier)
        self._look_later: asyncio.TimerHandle | None = None

    # What the leader says.

    def go(self) -> None:
        """Everything that must be known is: begin with what the ledger has."""
        self._running = True
        self.frontier.more = True
        self._refill()
        self._look()

    def assigned(self, message: Assigned) -> None:
        """URLs we found have ids: they may be fetched."""
        now = self._loop.time()
        offer = self.frontier.offer
        for id, found in enumerate(self._outbox.assigned(message.seq), message.first_id):
            if found.state == QUEUED:
                chain = found.detail or ""
                offer(found.host, FrontierUrl(found.depth, id, found.url, found.depth, 0, chain, found.found_via), now)
        self._pump_now()

    def committed(self, message: Committed) -> None:
        """Batches we handed in are durable."""
        for seq in message.seqs:
            ids, abroad = self._outbox.committed(seq)
            self.frontier.held.difference_update(ids)
            if abroad:
                self.discovery.arrived(abroad)
        if message.allowance is not None:
            self._allowance = -(-message.allowance // self._plan.fetchers)
        idle = self.frontier.drop_idle(self._tuning.idle_hosts, self._loop.time())
        if idle:
            self._introductions.forget(idle)
            self.discovery.forget_hosts(idle)
        self._pump_now()

    def incoming(self, message: Incoming) -> None:
        """Links to our hosts, found by another fetcher."""
        for links in self._links_decoder.decode(message.links):
            self.discovery.ours(links.urls, links)
        self._outbox.answers.append(message.ticket)
        if self._flush_later is not None:
            self._flush_later.cancel()
        self._flush_later = self._loop.call_soon(self._flush)  # pages wait for this answer to count

    def refilled(self, message: Refilled) -> None:
        """More of the ledger."""
        self._asked = False
        now = self._loop.time()
        for row in message.rows:
            chain = (row.detail or "") if row.found_via == "redirect" or row.found_via in SITEMAP_VIAS else ""
            entry = FrontierUrl(row.depth, row.id, row.url, row.depth, row.attempts, chain, row.found_via)
            if row.found_via == "seed" and (reason := self.discovery.refuses_seed(row.url, row.host)):
                self._refuse(entry, reason)
            else:
                self.frontier.offer(row.host, entry, now)
        self.frontier.read_to(message.cursor, end=message.end)
        self._pump_now()

    def _refuse(self, entry: FrontierUrl, reason: str) -> None:
        """A seed from a file that the rules of the crawl leave out."""
        if entry.id not in self.frontier.held:
            self.frontier.held.add(entry.id)
            self._end(entry, SKIPPED, reason, None)

    def set_level(self, depth: int) -> None:
        self.frontier.set_level(depth, self._loop.time())
        self._pump_now()

    def drain(self) -> None:
        """Start nothing more; say so when what is in flight has ended, or its time is up."""
        self._draining = True
        self._loop.call_later(self._tuning.drain_seconds, self._cut_off)
        self._maybe_drained()

    def close(self) -> None:
        self._running = False
        self._introductions.close()
        for timer in (self._alarm, self._flush_later, self._pump_soon, self._look_later):
            if timer is not None:
                timer.cancel()
        if self._archive is not None:
            self._archive.close()
        if self._screen is not None:
            self._screen.close()
        self.reader.close()
        self._client.close()

    # Taking URLs.

    @property
    def in_flight(self) -> int:
        return len(self._flying) + len(self._reading) + self._showing

    @property
    def _showing(self) -> int:
        return len(self._screen) if self._screen is not None else 0

    def _room(self) -> int:
        """Requests that may start: fewer beyond the soft limit of what is not durable yet, none beyond the hard one."""
        if self.reader.full or (self._screen is not None and self._screen.full):
            return 0
        tuning, outbox = self._tuning, self._outbox
        most = self._plan.concurrency
        pressure = max(
            (outbox.unsaved - tuning.soft_unsaved) / (tuning.hard_unsaved - tuning.soft_unsaved),
            (outbox.unsaved_bytes - tuning.soft_unsaved_bytes)
            / (tuning.hard_unsaved_bytes - tuning.soft_unsaved_bytes),
        )
        if pressure > 0:
            most = int(most * (1 - pressure))
        most += self._showing  # they are in flight, but it is not the network that they wait for
        if self._allowance is not None:
            most = min(most, self._allowance - outbox.unsaved_pages)
        return most - self.in_flight - self._introductions.under_way

    def _pump_now(self) -> None:
        if self._pump_soon is None and self._running and not self._draining:
            self._pump_soon = self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Start what may start, and set the alarm for what may not yet."""
        self._pump_soon = None
        if self._draining or not self._running:
            return
        now = self._loop.time()
        room = self._room()
        while room > 0 and (taken := self.frontier.take(now)) is not None:
            room -= self._begin(*taken, now)
        self._refill()
        if room > 0:
            self._set_alarm(self.frontier.next_at(), now)

    def _set_alarm(self, at: float | None, now: float) -> None:
        if at is None or (self._alarm is not None and self._alarm_at <= at):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = max(at, now)
        self._alarm = self._loop.call_later(max(0.001, at - now), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._pump_now()

    def _refill(self) -> None:
        if not self._asked and self.frontier.wants_more():
            self._asked = True
            self._desk.ask_for_more(self.frontier.cursor)

    def _begin(self, host: HostQueue, entry: FrontierUrl, now: float) -> int:
        """Send a request for the URL, or for what must be known before; how many requests that makes."""
        if host.name in self._gave_up:
            self._end(entry, FAILED, HOST_UNAVAILABLE, self._gave_up[host.name])
            self.frontier.wake(host, now)
            return 0
        rules = self._introductions.rules_for(host, entry.url)
        if rules is None:
            self.frontier.put_back(host.name, entry, now)
            self._introductions.introduce(host, entry.url)
            return 1
        if self._sitemaps.is_over(entry):
            self._end(entry, SKIPPED, OVER_LIMIT, "the crawl has taken enough from sitemaps")
            self.frontier.wake(host, now)
            return 0
        if rules.group and not self.reader.allows(rules, entry.url):
            self._end(entry, SKIPPED, ROBOTS_UNAVAILABLE if rules.reason else ROBOTS, rules.explain(entry.url))
            self.frontier.wake(host, now)
            return 0
        if not self._introductions.may_start(host, now):
            self.frontier.put_back(host.name, entry, now)
            return 0
        self.frontier.started(host, now)
        self._introductions.started(host)
        self._flying[entry.id] = (entry, now, None)
        exchange = self._client.start(Request(entry.url), partial(self._fetched, host, entry))
        if exchange is not None:
            self._flying[entry.id] = (entry, now, exchange)
        return 1

    def _introduced(self, host: HostQueue, url: str, rules: Robots, failures: int) -> None:
        now = self._loop.time()
        if failures:
            self._robots_missing(host, rules, failures, now)
        else:
            host.clock.crawl_delay = max(host.clock.crawl_delay, rules.crawl_delay or 0.0)
            host.clock.sleep_until(now + host.clock.crawl_delay, waiting.CRAWL_DELAY, host.clock.crawl_delay)
            self._sitemaps.named(host.name, url, rules)
            self._flush_soon()
        self.frontier.wake(host, now)
        self._pump_now()

    def _robots_missing(self, host: HostQueue, rules: Robots, failures: int, now: float) -> None:
        """Nothing may be fetched; try again a few times, then leave the host alone."""
        if failures < self._tuning.robots_tries and is_temporary(rules.reason):
            wait = retry_delay(failures, self._tuning.retry_base, self._tuning.retry_cap)
            wait = max(wait, rules.retry_after)
            host.clock.trouble = rules.reason or ""
            host.clock.sleep_until(now + wait, waiting.ROBOTS_UNAVAILABLE, wait)
            return
        gone = unreachable(rules)
        for entry in self.frontier.clear_host(host):
            if gone:
                self._end(entry, FAILED, rules.reason, "asking for robots.txt", attempts=failures)
            else:
                self._end(entry, SKIPPED, ROBOTS_UNAVAILABLE, rules.explain(entry.url))

    # What came back.

    def _fetched(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched) -> None:
        now = self._loop.time()
        _, started, _ = self._flying.pop(entry.id, (entry, now, None))
        self._introductions.ended(host, now)
        self._outbox.wire_bytes += fetched.wire_bytes
        if fetched.reason != reasons.CLOSED:
            self._note_pace(host, fetched, started, now)
            if fetched.redirect:
                self._redirected(entry, fetched)
            elif not fetched.ok:
                self._failed(host, entry, fetched, now)
            elif self._screen is not None and self._screen.wants(entry, fetched):
                self._screen.show(entry, fetched, partial(self._shown, host, entry))
            else:
                self._read(host, entry, fetched)
        self.frontier.ended(host, now)
        self._after()

    def _after(self) -> None:
        self._flush_soon()
        self._pump_now()
        if self._draining:
            self._maybe_drained()

    def _note_pace(self, host: HostQueue, fetched: Fetched, started: float, now: float) -> None:
        reason, clock, tuning = fetched.reason, host.clock, self._tuning
        if reason is None or not is_temporary(reason) or reason == reasons.MEMORY_FULL:
            clock.answered(now, fetched.timings.total)
        elif reason in _REFUSALS:
            clock.trouble = reason
            clock.refused(now, started, retry_after(fetched, time.time()), tuning.longest_wait)
            again = clock.refusals > 1 and clock.waited > tuning.most_waited
            if again or clock.waited_in_all > 3 * tuning.most_waited or clock.refusals >= tuning.give_up_after:
                self._give_up(host, reason)
        else:
            clock.trouble = reason
            clock.failed(now, started)
            if not reason.startswith("http_") and clock.failures >= tuning.give_up_after:
                self._give_up(host, reason)

    def _give_up(self, host: HostQueue, reason: str) -> None:
        """The host has failed too often in a row: what is left of it fails too, and can be asked for again later."""
        self._gave_up[host.name] = reason
        for entry in (*self.frontier.clear_host(host), *self.frontier.clear_retries(host)):
            self._end(entry, FAILED, HOST_UNAVAILABLE, reason)

    def _give_up_long_waits(self, now: float) -> None:
        """Nothing else is left to do: do not wait for hosts that asked to be left alone for too long."""
        at, longest = self.frontier.next_at(), self._tuning.longest_wait
        busy = self.in_flight or self._introductions.under_way or self._asked or self.frontier.wants_more()
        if busy or at is None or at - now <= longest:
            return
        for host in self.frontier.asleep_after(now + longest):
            seconds = host.clock.next_at - now
            self._give_up(
                host, f"{host.clock.trouble or 'it'} asks for {seconds:.0f} s more, the longest wait is {longest:.0f} s"
            )

    def _redirected(self, entry: FrontierUrl, fetched: Fetched) -> None:
        target = canonical(fetched.location or "")
        chain = [*entry.chain.split(), entry.url]
        wrong = wrong_redirect(target, chain, self._tuning.max_redirects)
        if wrong is not None or target is None:
            self._end(entry, FAILED, wrong, target or fetched.location, status=fetched.status)
            return
        via = self._sitemaps.via_after_redirect(entry, target) if entry.via in SITEMAP_VIAS else "redirect"
        self.discovery.links([target], Links(entry.id, entry.depth, via, " ".join(chain), []))
        self._outbox.page(redirect_of(entry, fetched, target))

    def _failed(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched, now: float) -> None:
        reason = fetched.reason or reasons.BAD_RESPONSE
        attempts, status = entry.attempts + 1, fetched.status or None
        if not is_temporary(reason) or attempts >= self._tuning.tries or host.name in self._gave_up:
            self._end(entry, FAILED, reason, fetched.detail, status=status)
            return
        self._outbox.settle(Settled(entry.id, QUEUED, reason, entry.chain or None, attempts, status), entry.depth)
        wait = retry_delay(attempts, self._tuning.retry_base, self._tuning.retry_cap)
        self.frontier.retry(host.name, entry._replace(attempts=attempts), max(now + wait, host.clock.next_at))

    def _end(
        self,
        entry: FrontierUrl,
        state: str,
        reason: str | None,
        detail: str | None,
        *,
        status: int | None = None,
        attempts: int | None = None,
    ) -> None:
        """A URL that brought nothing has its end."""
        tries = attempts if attempts is not None else entry.attempts + (state == FAILED)
        settled = Settled(entry.id, state, reason, storable(detail), tries, status)
        self._outbox.settle(settled, entry.depth)
        self._flush_soon()

    def _read(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched) -> None:
        self._reading[entry.id] = (host, entry, fetched)
        wants_simhash, is_sitemap = self.discovery.wants_simhash(host.name), entry.via in SITEMAP_VIAS
        self.reader.read(body_of(entry, fetched, simhash=wants_simhash, sitemap=is_sitemap), self._was_read)

    def _was_read(self, reading: Reading) -> None:
        known = self._reading.pop(reading.id, None)
        if known is None:  # it came too late, after the time to drain was up
            return
        host, entry, fetched = known
        if reading.needs_scripts and fetched.rendered is None and self._screen is not None:
            self._screen.show(entry, fetched, partial(self._shown, host, entry))
            self._after()
            return
        if entry.via in SITEMAP_VIAS:
            reading = self._sitemaps.was_read(entry, reading)
        elif reading.links:
            self.discovery.links(reading.links, Links(entry.id, entry.depth + 1, "link", "", []))
        if reading.reason is None:
            if self._archive is not None:
                self._archive.add(entry.id, fetched)
            self.discovery.fetched(host.name, entry.url, reading.simhash)
        self._outbox.page(page_of(entry, fetched, reading))
        self._after()

    def _shown(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched) -> None:
        """The page has been in a browser."""
        if fetched.rendered is not None:
            self._outbox.wire_bytes += fetched.rendered.wire_bytes
        if fetched.redirect:
            self._redirected(entry, fetched)
        elif fetched.ok:
            self._read(host, entry, fetched)
        else:
            self._failed(host, entry, fetched, self._loop.time())
        self._after()

    # Reporting.

    def _flush_soon(self) -> None:
        if self._flush_later is None and self._outbox:
            self._flush_later = self._loop.call_later(self._tuning.flush_seconds, self._flush)

    def _flush(self) -> None:
        self._flush_later = None
        if self._outbox:
            self._desk.hand_in(self._outbox.pack(self._live()))

    def _live(self) -> Live:
        urls = [entry.url for entry, _, _ in islice(self._flying.values(), 10)]
        urls += self._screen.urls(10) if self._screen is not None else ()
        return Live(self.in_flight, self.frontier.size, urls)

    def _look(self) -> None:
        """Say which hosts wait, and why."""
        if self._running and not self._draining:
            self._give_up_long_waits(self._loop.time())
            self._desk.show(self._lookout.look(self._loop.time(), time.time()), self._live())
            self._look_later = self._loop.call_later(self._tuning.look_seconds, self._look)

    # The end.

    def _cut_off(self) -> None:
        """What has not come by now stays queued in the ledger."""
        for _, _, exchange in self._flying.values():
            if exchange is not None:
                self._client.cancel(exchange)
        self._flying.clear()
        self._reading.clear()
        if self._screen is not None:
            self._screen.cut_off()
        self._maybe_drained()

    def _maybe_drained(self) -> None:
        if self._running and not self.in_flight:
            self._running = False
            if self._screen is not None:
                self._screen.close()
            if self._flush_later is not None:
                self._flush_later.cancel()
            self._flush()
            self._desk.drained()

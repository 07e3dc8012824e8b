"""The pump: takes URLs from the frontier when clock, address and robots rules allow it, and starts requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Final

from silkline.crawl.answers import Answers
from silkline.crawl.endings import ROBOTS_UNAVAILABLE, Endings
from silkline.crawl.fetcher_gauges import BackPressure
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.host_bookings import HostBookings
from silkline.crawl.host_gate import HostGate
from silkline.crawl.ledger_part import LedgerPart
from silkline.crawl.messages import Book
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import Plan
from silkline.crawl.purpose import LATER_SECONDS, Purpose
from silkline.crawl.request_place import RequestPlace
from silkline.crawl.sitemap_limits import OVER_LIMIT, SITEMAP_VIAS
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.client import Exchange, HttpClient
from silkline.fetch.robots import Robots
from silkline.metrics.instruments import FETCH_SECONDS, ROBOTS_REFUSALS
from silkline.model import host_wait as waiting
from silkline.model.fetched import HOST_UNAVAILABLE, Fetched, Request
from silkline.model.ledger import FAILED, SKIPPED

ROBOTS: Final = "robots"
_TURN: Final = 0.05
"""Seconds after which the event loop goes on, even if more requests may start."""


class Pump:
    """`ask_for_more` is called with the id up to which a part of the ledger was read, and whether that is the foreign
    one; `after` when a request has ended; `note_robots` with the rules of a host; `book` with hosts whose time is to be
    booked."""

    def __init__(
        self,
        plan: Plan,
        client: HttpClient,
        reader: GuardedReader,
        frontier: Frontier,
        outbox: Outbox,
        endings: Endings,
        answers: Answers,
        purpose: Purpose,
        ask_for_more: Callable[[int, bool], None],
        after: Callable[[], None],
        note_robots: Callable[[str, Robots], None],
        book: Callable[[Book], None],
    ) -> None:
        self._plan = plan
        self._client = client
        self._reader = reader
        self._frontier = frontier
        self._outbox = outbox
        self._endings = endings
        self._answers = answers
        self._purpose = purpose
        self._ask_for_more = ask_for_more
        self._after = after
        self._note_robots = note_robots
        self._loop = asyncio.get_running_loop()
        bookings = HostBookings(plan, frontier, book, self.soon)
        self.gate = HostGate(plan, client, frontier, reader, self._introduced, self.soon, bookings)
        answers.on_waits, answers.on_read = self.gate.waits_to_be_read, self.gate.was_read
        answers.on_put_off, reader.address_of = self.gate.put_offs.add, self.gate.address_of
        if answers.render_queue is not None:
            answers.on_not_shown = self.gate.put_offs_before(answers.render_queue).add
        endings.put_offs = self.gate.every_put_offs
        answers.on_shows, answers.on_shown = self.gate.waits_for_browser, self.gate.was_shown
        self._flying: dict[int, tuple[FrontierUrl, float, Exchange | None]] = {}
        self.allowance = plan.limit if plan.shard is None or plan.limit is None else 0
        """Pages that may still be stored; None: no limit. A shard gets its share of the limit later."""
        self._back_pressure = BackPressure()
        self._running = False
        self._asked: LedgerPart | None = None
        self._soon: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    def urls(self, most: int) -> list[str]:
        """Some of the URLs that are being requested now."""
        return [entry.url for entry, _, _ in islice(self._flying.values(), most)]

    def start(self) -> None:
        self._running = True
        self._refill()

    def stop(self) -> None:
        """Start no more requests."""
        self._running = False

    def cut_off(self) -> None:
        """Cancel the requests in flight. Their URLs stay queued in the ledger."""
        for _, _, exchange in self._flying.values():
            if exchange is not None:
                self._client.cancel(exchange)
        self._flying.clear()

    def close(self) -> None:
        self._running = False
        self.gate.close()
        for timer in (self._alarm, self._soon):
            if timer is not None:
                timer.cancel()

    def refilled(self, cursor: int, *, end: bool) -> None:
        """The ledger was read up to an id; `end`: that is its last one."""
        part, self._asked = self._asked, None
        if part is not None:
            self._frontier.read_to(part, cursor, end=end)
        self.soon()

    def soon(self) -> None:
        """Something changed: check soon which requests may start."""
        if self._soon is None and self._running:
            self._soon = self._loop.call_soon(self._pump)

    def look_after_waits(self) -> None:
        """Called at intervals, for hosts that wait."""
        self.gate.wake_idle()
        self._frontier.look_at_level(self._loop.time())
        self.give_up_long_waits()
        self.soon()  # also for whatever was woken without a word to us

    def give_up_long_waits(self) -> None:
        """If nothing else is left to do, give up the hosts that asked us to wait too long."""
        if not self._running:
            return
        at, now = self._next_at(), self._loop.time()
        if at is None or at - now <= self._plan.tuning.longest_wait:
            return
        busy = self._flying or self._answers.under_way or self.gate.busy or self._asked
        if not busy and self._frontier.next_to_read() is None:
            self._endings.give_up_long_waits(now)

    # Starting requests.

    def _room(self, now: float) -> int:
        """How many requests may start: fewer above the soft limit of unsaved pages, none above the hard limit."""
        full = self._answers.full
        tuning, outbox = self._plan.tuning, self._outbox
        most = self._plan.concurrency
        pressure = max(
            (outbox.unsaved - tuning.soft_unsaved) / (tuning.hard_unsaved - tuning.soft_unsaved),
            (outbox.unsaved_bytes - tuning.soft_unsaved_bytes)
            / (tuning.hard_unsaved_bytes - tuning.soft_unsaved_bytes),
        )
        self._back_pressure.note(pressure, full, now)
        if full:
            return 0
        if pressure > 0:
            most = int(most * (1 - pressure))
        most += self._answers.set_aside  # they count as in flight, but do not use the network
        if self.allowance is not None:
            most = min(most, self.allowance - outbox.unsaved_pages)
        return most - len(self._flying) - self._answers.under_way - self.gate.under_way

    def _pump(self) -> None:
        """Start the requests that may start, and set a timer for the next one."""
        self._soon = None
        if not self._running:
            return
        now = self._loop.time()
        for put_offs in self.gate.every_put_offs:
            put_offs.let_in(now)
        room = self._room(now)
        if room > 0:
            self.gate.unproven.admit(now)
        end = time.monotonic() + _TURN
        while room > 0 and (taken := self._frontier.take(now)) is not None:
            room -= self._begin(*taken, now)
            if time.monotonic() > end:  # many URLs are settled without a request: answers and orders must be heard
                self.soon()
                break
        self._refill()
        if room > 0:
            self._set_alarm(self._next_at(), now)
            if self._plan.fetchers == 1 and not self._outbox.waits:
                self.give_up_long_waits()

    def _next_at(self) -> float | None:
        """The next time at which there may be something to do, even if nothing happens until then."""
        moments = (self._frontier.next_at(), *(each.next_at() for each in self.gate.every_put_offs))
        return min((at for at in moments if at is not None), default=None)

    def _set_alarm(self, at: float | None, now: float) -> None:
        if at is None or (self._alarm is not None and self._alarm_at <= at):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = max(at, now)
        self._alarm = self._loop.call_later(max(0.001, at - now), self._alarm_rang)

    def _alarm_rang(self) -> None:
        self._alarm = None
        self.soon()

    def _refill(self) -> None:
        if self._asked is None and (part := self._frontier.next_to_read()) is not None:
            self._asked = part
            self._ask_for_more(part.cursor, part.foreign)

    def _begin(self, host: HostQueue, entry: FrontierUrl, now: float) -> int:
        """Send a request for the URL, or first for robots.txt of its host. Returns the number of requests sent."""
        if host.name in self._endings.given_up:
            return self._leave(host, entry, now, FAILED, HOST_UNAVAILABLE, self._endings.given_up[host.name])
        rules = self.gate.rules_for(host, entry.url)
        if rules is None:
            self._frontier.put_back(host.name, entry, now)
            return self.gate.introduce(host, entry.url)
        if self._purpose.is_over(entry):
            return self._leave(host, entry, now, SKIPPED, OVER_LIMIT, "the crawl has enough URLs from sitemaps")
        if rules.group and host.allowed != entry.id:
            if (forbidden := self._reader.refusal(rules, entry.url)) is not None:
                ROBOTS_REFUSALS.add()
                why = ROBOTS_UNAVAILABLE if rules.reason else ROBOTS
                return self._leave(host, entry, now, SKIPPED, why, forbidden)
            host.allowed = entry.id
        if self._purpose.must_wait(entry):
            self._frontier.retry(host.name, entry, now + LATER_SECONDS)
            return self._pass(host, now)
        if not self.gate.may_start(host, now):
            self._frontier.put_back(host.name, entry, now)
            return 0
        self._frontier.started(host, now)
        if host.clock.delay:
            host.clock.started(time.monotonic())  # `now` is rounded down, and older if many requests start at once
        place = self.gate.started(host)
        self._flying[entry.id] = (entry, now, None)
        request = Request(entry.url, purpose="sitemap" if entry.via in SITEMAP_VIAS else "page")
        exchange = self._client.start(request, partial(self._fetched, host, entry, place), place)
        if exchange is not None:
            self._flying[entry.id] = (entry, now, exchange)
        return 1

    def _leave(self, host: HostQueue, entry: FrontierUrl, now: float, state: str, reason: str, detail: str) -> int:
        """Settle a URL without a request."""
        self._endings.end(entry, state, reason, detail)
        return self._pass(host, now)

    def _pass(self, host: HostQueue, now: float) -> int:
        """No request is sent for the URL that was taken. Returns the number of requests sent: 0."""
        self._frontier.wake(host, now)
        if not host.queue:
            self.gate.pass_turn(host, now)
        return 0

    def _introduced(self, host: HostQueue, url: str, rules: Robots, failures: int) -> None:
        now, clock = self._loop.time(), host.clock
        host.allowed = 0  # by other rules
        self._note_robots(host.name, rules)
        if failures:
            self._endings.without_robots(host, url, rules, failures, now)
        else:
            clock.crawl_delay = max(clock.crawl_delay, rules.crawl_delay or 0.0)
            if self.gate.robots_count(host):
                clock.sleep_until(now + clock.crawl_delay, waiting.CRAWL_DELAY, clock.crawl_delay)
            else:
                clock.next_at = now
                for put_offs in self.gate.every_put_offs:
                    put_offs.wake(host.name)
            self._purpose.introduced(host.name, url, rules)
        self._frontier.wake(host, now)
        self._after()

    def _fetched(self, host: HostQueue, entry: FrontierUrl, place: RequestPlace | None, fetched: Fetched) -> None:
        now = self._loop.time()
        _, started, _ = self._flying.pop(entry.id, (entry, now, None))
        FETCH_SECONDS.observe(now - started)
        if place is not None:
            self.gate.follow(host, place, reached=bool(fetched.address))
        self.gate.put_offs.arrived(entry.id)
        try:
            self._answers.take(host, entry, fetched, started, now)
        finally:
            self.gate.ended(host, place, now)
        if host.clock.refusals:
            self.gate.bookings.rest(host)
        self._frontier.ended(host, now)
        self._after()

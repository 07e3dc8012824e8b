"""One fetcher: an event loop that takes URLs of its own hosts from its frontier, fetches and reads them, and reports.

It owns the queues, politeness clocks, robots rules, seen-set and trap budgets of its hosts. It never touches the
database: what it comes to goes to the leader in batches, and counts once the leader says that it is durable.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Protocol

import msgspec

from silkline.crawl import traps
from silkline.crawl.frontier import Entry, Frontier, Host
from silkline.crawl.messages import (
    Assigned,
    Batch,
    Committed,
    Drain,
    Ended,
    Found,
    Go,
    Incoming,
    Known,
    Links,
    Live,
    Refilled,
    Roots,
    ToFetcher,
    links_decoder,
)
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import Plan
from silkline.crawl.politeness import Address, retry_delay
from silkline.crawl.reading import SITEMAP, Body, Reader, Reading
from silkline.crawl.robots import RobotsCache, unreachable
from silkline.crawl.scope import Scope
from silkline.crawl.seen import Seen, key_of
from silkline.crawl.shards import Shards
from silkline.fetch.client import Client, Exchange
from silkline.fetch.dns import SystemResolver
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.origin import locate
from silkline.fetch.robots import Robots
from silkline.fetch.settings import FetchSettings
from silkline.model import fetched as reasons
from silkline.model.fetched import Fetched, Request, is_temporary, retry_after
from silkline.model.url import canonical, host_of, origin_of, url_key
from silkline.store.urls import DONE, FAILED, QUEUED, SKIPPED, NewResult, Settled

REDIRECTED = "redirected"
ROBOTS = "robots"
ROBOTS_UNAVAILABLE = "robots_unavailable"
HOST_GAVE_UP = "host_unavailable"
_REFUSALS = frozenset({"http_429", "http_503"})
_SITEMAP_VIAS = frozenset({"robots", "sitemap_index"})
_encode = msgspec.json.Encoder().encode


class Desk(Protocol):
    """The leader, as a fetcher sees it."""

    def hand_in(self, batch: Batch) -> None: ...
    def ask_for_more(self, cursor: int) -> None: ...
    def drained(self) -> None: ...


class Fetcher:
    """Everything one fetcher owns, and the way of a URL through it."""

    def __init__(self, index: int, plan: Plan, client: Client, reader: Reader, desk: Desk) -> None:
        tuning = plan.tuning
        self._plan = plan
        self._tuning = tuning
        self._client = client
        self._reader = reader
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self.index = index
        self._shards = Shards(plan.fetchers)
        self.seen = Seen()
        self.scope = Scope(plan)
        self._traps = traps.Traps(tuning)
        self._trap_hosts: dict[str, traps.Host] = {}
        self.frontier = Frontier(plan.pace, window=tuning.window, per_host=tuning.per_host_window)
        self._robots = RobotsCache(client, plan.user_agent.partition("/")[0].lower(), ignore=plan.ignore_robots)
        self._addresses: dict[str, Address] = {}
        self._waiting: dict[Address, deque[Host]] = {}
        self._outbox = Outbox()
        self._links_decoder = links_decoder()
        self._abroad = Seen()
        self._flying: dict[int, tuple[Host, Entry, float, Exchange | None]] = {}
        self._reading: dict[int, tuple[Host, Entry, Fetched]] = {}
        self._gave_up: dict[str, str] = {}
        self._waited: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._allowance: int | None = plan.limit
        self._running = False
        self._draining = False
        self._pump_soon: asyncio.Handle | None = None
        self._pump_later: asyncio.TimerHandle | None = None
        self._pump_at = 0.0
        self._flush_later: asyncio.TimerHandle | None = None
        self._asked = False

    # What the leader says.

    def go(self) -> None:
        """Everything that must be known is: begin with what the ledger has."""
        self._running = True
        self.frontier.more = True
        self._refill()

    def assigned(self, message: Assigned) -> None:
        now = self._loop.time()
        offer = self.frontier.offer
        for id, found in enumerate(self._outbox.assigned(message.seq), message.first_id):
            if found.state == QUEUED:
                chain = found.detail or ""
                offer(found.host, Entry(found.depth, id, found.url, found.depth, 0, chain, found.found_via), now)
        self._pump_now()

    def committed(self, message: Committed) -> None:
        for seq in message.seqs:
            ids, abroad = self._outbox.committed(seq)
            for id in ids:
                self.frontier.forget(id)
            if abroad:
                if len(self._abroad) > 1_000_000:
                    self._abroad = Seen()
                self._abroad.add_all(abroad)
        if message.allowance is not None:
            self._allowance = -(-message.allowance // self._plan.fetchers)
        for name in self.frontier.drop_idle(self._tuning.idle_hosts, self._loop.time()):
            self._robots.forget(name)
        self._pump_now()

    def incoming(self, message: Incoming) -> None:
        """Links to our hosts, found by another fetcher."""
        for links in self._links_decoder.decode(message.links):
            self._judge(links.urls, links)
        self._outbox.answers.append(message.ticket)
        self._flush_soon()

    def refilled(self, message: Refilled) -> None:
        self._asked = False
        now = self._loop.time()
        for row in message.rows:
            chain = (row.detail or "") if row.found_via == "redirect" else ""
            entry = Entry(row.depth, row.id, row.url, row.depth, row.attempts, chain, row.found_via)
            self.frontier.offer(row.host, entry, now)
        self.frontier.read_to(message.cursor, end=message.end)
        self._pump_now()

    def drain(self) -> None:
        """Start nothing more; say so when what is in flight has ended, or its time is up."""
        self._draining = True
        self._loop.call_later(self._tuning.drain_seconds, self._cut_off)
        self._maybe_drained()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for timer in (self._pump_later, self._flush_later, self._pump_soon):
            if timer is not None:
                timer.cancel()
        self._running = False
        self._client.close()

    # Taking URLs.

    @property
    def in_flight(self) -> int:
        return len(self._flying) + len(self._reading)

    def _most_in_flight(self) -> int:
        """Slower beyond the soft limit of what is not durable yet, nothing beyond the hard one."""
        tuning, outbox = self._tuning, self._outbox
        if self._reader.full:
            return 0
        most = self._plan.concurrency
        pressure = max(
            (outbox.unsaved - tuning.soft_unsaved) / (tuning.hard_unsaved - tuning.soft_unsaved),
            (outbox.unsaved_bytes - tuning.soft_unsaved_bytes)
            / (tuning.hard_unsaved_bytes - tuning.soft_unsaved_bytes),
        )
        if pressure > 0:
            most = int(most * (1 - pressure))
        if self._allowance is not None:
            most = min(most, self._allowance - outbox.unsaved_pages)
        return most

    def _pump_now(self) -> None:
        if self._pump_soon is None and self._running and not self._draining:
            self._pump_soon = self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Start what may start, and set the alarm for what may not yet."""
        self._pump_soon = None
        if self._draining or not self._running:
            return
        now = self._loop.time()
        room = self._most_in_flight() - self.in_flight
        frontier = self.frontier
        while room > 0:
            taken = frontier.take(now)
            if taken is None:
                break
            room -= self._begin(*taken, now)
        self._refill()
        if room > 0:
            self._set_alarm(frontier.next_at(), now)

    def _set_alarm(self, at: float | None, now: float) -> None:
        if at is None:
            return
        if self._pump_later is not None:
            if self._pump_at <= at and self._pump_at > now:
                return
            self._pump_later.cancel()
        self._pump_at = max(at, now + 0.001)
        self._pump_later = self._loop.call_at(self._pump_at, self._alarm)

    def _alarm(self) -> None:
        self._pump_later = None
        self._pump_now()

    def _refill(self) -> None:
        if not self._asked and self.frontier.wants_more():
            self._asked = True
            self._desk.ask_for_more(self.frontier.cursor)

    def _begin(self, host: Host, entry: Entry, now: float) -> int:
        """Send one request; how many are in flight by that."""
        if host.name in self._gave_up:
            self._end(entry, FAILED, HOST_GAVE_UP, self._gave_up[host.name])
            self.frontier.wake(host, now)
            return 0
        rules = self._robots.of(origin_of(entry.url))
        if rules is None or host.address is None:
            self.frontier.put_back(host.name, entry, now)
            self._prepare(host, entry.url, now)
            return 0
        if rules.group and entry.via not in _SITEMAP_VIAS and not rules.allows(entry.url):
            self._end(entry, SKIPPED, ROBOTS, rules.explain(entry.url))
            self.frontier.wake(host, now)
            return 0
        if not self._address_is_free(host, host.address, now):
            self.frontier.put_back(host.name, entry, now)
            return 0
        self._send(host, host.address, entry, now)
        return 1

    def _address_is_free(self, host: Host, address: Address, now: float) -> bool:
        """Whether the hosts that share an address leave room for one more request; else this host waits its turn."""
        if address.full:
            host.parked = True
            self._waiting.setdefault(address, deque()).append(host)
            return False
        if not host.reserved:
            turn = address.reserve(now)
            if turn > now:
                host.reserved = True
                host.clock.sleep_until(turn)
                return False
        host.reserved = False
        return True

    def _address_ended(self, address: Address, now: float) -> None:
        address.in_flight -= 1
        waiting = self._waiting.get(address)
        if waiting:
            host = waiting.popleft()
            host.parked = False
            self.frontier.wake(host, now)

    def _send(self, host: Host, address: Address, entry: Entry, now: float) -> None:
        self.frontier.started(host, now)
        address.in_flight += 1
        self._flying[entry.id] = (host, entry, now, None)
        exchange = self._client.start(Request(entry.url), partial(self._fetched, host, entry))
        if exchange is not None:
            self._flying[entry.id] = (host, entry, now, exchange)

    # Getting to know a host.

    def _prepare(self, host: Host, url: str, now: float) -> None:
        if host.parked:
            return
        host.parked = True
        task = self._loop.create_task(self._introduce(host, url))
        self._tasks.add(task)
        task.add_done_callback(self._introduced)

    def _introduced(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "a host could not be prepared", "exception": error})

    async def _introduce(self, host: Host, url: str) -> None:
        """Find the host's address and read its robots.txt; then it may be asked."""
        origin = origin_of(url)
        if host.address is None:
            host.address = await self._address_of(url, host.name)
        rules, failures = self._robots.of(origin), 0
        if rules is None:
            host.clock.started(self._loop.time())
            host.address.in_flight += 1
            rules, failures = await self._robots.load(origin)
            self._address_ended(host.address, self._loop.time())
        now = self._loop.time()
        host.parked = False
        if failures:
            self._robots_missing(host, rules, failures, now)
        else:
            host.clock.crawl_delay = max(host.clock.crawl_delay, rules.crawl_delay or 0.0)
            host.clock.sleep_until(now + host.clock.crawl_delay)
            if rules.sitemaps and self._plan.sitemaps:
                self._discover(self._sitemaps(rules, url), Links(0, 1, "robots", "", []))
        self.frontier.wake(host, now)
        self._pump_now()

    async def _address_of(self, url: str, name: str) -> Address:
        target = locate(url)
        key = name
        if not isinstance(target, str):
            key = target.origin.literal
            if not key and not self._plan.proxy:
                answer = await self._client.resolver.resolve(target.origin.host)
                key = answer[0] if not isinstance(answer, str) else name
        if key not in self._addresses:
            self._addresses[key] = Address(self._plan.pace, self._plan.fetchers)
        return self._addresses[key]

    def _robots_missing(self, host: Host, rules: Robots, failures: int, now: float) -> None:
        """Nothing may be fetched; try again a few times, then leave the host alone."""
        if failures < self._tuning.robots_tries and is_temporary(rules.reason):
            host.clock.sleep_until(now + retry_delay(failures, self._tuning.retry_base, self._tuning.retry_cap))
            return
        gone = unreachable(rules)
        for entry in self.frontier.clear_host(host):
            if gone:
                self._end(entry, FAILED, rules.reason, "robots.txt could not be asked for", attempts=failures)
            else:
                self._end(entry, SKIPPED, ROBOTS_UNAVAILABLE, rules.explain(entry.url))

    def _sitemaps(self, rules: Robots, url: str) -> list[str]:
        return [found for found in (canonical(each, base=url) for each in rules.sitemaps[:100]) if found is not None]

    # What came back.

    def _fetched(self, host: Host, entry: Entry, fetched: Fetched) -> None:
        now = self._loop.time()
        self._flying.pop(entry.id, None)
        if host.address is not None:
            self._address_ended(host.address, now)
        self.frontier.ended(host, now)
        self._outbox.wire_bytes += fetched.wire_bytes
        if fetched.reason == reasons.CLOSED:
            return
        self._note_pace(host, fetched, now)
        if fetched.redirect:
            self._redirected(entry, fetched)
        elif fetched.ok:
            self._read(host, entry, fetched)
        else:
            self._failed(host, entry, fetched, now)
        self._pump_now()
        if self._draining:
            self._maybe_drained()

    def _note_pace(self, host: Host, fetched: Fetched, now: float) -> None:
        reason = fetched.reason
        if reason is None or not is_temporary(reason) or reason == reasons.MEMORY_FULL:
            host.clock.answered(now, fetched.timings.total)
        elif reason in _REFUSALS:
            before = host.clock.next_at
            host.clock.refused(now, retry_after(fetched, time.time()), self._tuning.longest_wait)
            waited = self._waited.get(host.name, 0.0) + max(0.0, host.clock.next_at - max(before, now))
            self._waited[host.name] = waited
            if waited > self._tuning.longest_wait or host.clock.refusals >= self._tuning.give_up_after:
                self._give_up(host, reason)
        else:
            host.clock.failed(now)
            if not reason.startswith("http_") and host.clock.failures >= self._tuning.give_up_after:
                self._give_up(host, reason)

    def _give_up(self, host: Host, reason: str) -> None:
        """The host has failed too often in a row: what is left of it fails too, and can be asked for again later."""
        self._gave_up[host.name] = reason
        for entry in self.frontier.clear_host(host):
            self._end(entry, FAILED, HOST_GAVE_UP, reason)

    def _redirected(self, entry: Entry, fetched: Fetched) -> None:
        target = canonical(fetched.location or "")
        chain = [*entry.chain.split(), entry.url]
        if target is None:
            self._end(entry, FAILED, reasons.BAD_REDIRECT, fetched.location, status=fetched.status)
        elif target in chain:
            self._end(entry, FAILED, reasons.REDIRECT_LOOP, target, status=fetched.status)
        elif len(chain) > self._tuning.max_redirects:
            self._end(entry, FAILED, reasons.TOO_MANY_REDIRECTS, target, status=fetched.status)
        else:
            via = entry.via if entry.via in _SITEMAP_VIAS else "redirect"
            self._discover([target], Links(entry.id, entry.depth, via, " ".join(chain), []))
            settled = Settled(entry.id, SKIPPED, REDIRECTED, target, entry.attempts + 1, fetched.status)
            self._outbox.page(Ended(settled, None))
            self._flush_soon()

    def _failed(self, host: Host, entry: Entry, fetched: Fetched, now: float) -> None:
        reason = fetched.reason or reasons.BAD_RESPONSE
        attempts = entry.attempts + 1
        given_up = host.name in self._gave_up
        if not is_temporary(reason) or attempts >= self._tuning.tries or given_up:
            self._end(entry, FAILED, reason, fetched.detail, status=fetched.status or None)
            return
        chain = entry.chain or None
        self._outbox.settle(Settled(entry.id, QUEUED, reason, chain, attempts, fetched.status or None))
        wait = retry_delay(attempts, self._tuning.retry_base, self._tuning.retry_cap)
        self.frontier.retry(host.name, entry._replace(attempts=attempts), max(now + wait, host.clock.next_at))
        self._flush_soon()

    def _end(
        self,
        entry: Entry,
        state: str,
        reason: str | None,
        detail: str | None,
        *,
        status: int | None = None,
        attempts: int | None = None,
    ) -> None:
        tries = entry.attempts + (1 if status or state == FAILED else 0) if attempts is None else attempts
        self._outbox.settle(Settled(entry.id, state, reason, (detail or "")[:1000] or None, tries, status))
        self._flush_soon()

    # Reading pages.

    def _read(self, host: Host, entry: Entry, fetched: Fetched) -> None:
        trap_host = self._trap_host(host.name)
        body = Body(
            entry.id,
            entry.url,
            fetched.body,
            fetched.content_type,
            fetched.charset,
            fetched.headers.get("x-robots-tag", ""),
            self._traps.wants_simhash(trap_host),
            entry.via in _SITEMAP_VIAS,
        )
        self._reading[entry.id] = (host, entry, fetched)
        self._reader.read(body, self._was_read)

    def _was_read(self, reading: Reading) -> None:
        host, entry, fetched = self._reading.pop(reading.id)
        if reading.links:
            via = SITEMAP if entry.via in _SITEMAP_VIAS else "link"
            self._discover(reading.links, Links(entry.id, entry.depth + 1, via, "", []))
        if reading.sitemaps:
            self._discover(reading.sitemaps, Links(entry.id, entry.depth, "sitemap_index", "", []))
        attempts, status = entry.attempts + 1, fetched.status
        if reading.reason is not None:
            settled = Settled(entry.id, SKIPPED, reading.reason, reading.detail, attempts, status)
            self._outbox.page(Ended(settled, None))
        else:
            self._traps.fetched(self._trap_host(host.name), entry.url, reading.simhash)
            settled = Settled(entry.id, DONE, None, None, attempts, status)
            self._outbox.page(Ended(settled, self._result(entry, fetched, reading)))
        self._flush_soon()
        self._pump_now()
        if self._draining:
            self._maybe_drained()

    def _result(self, entry: Entry, fetched: Fetched, reading: Reading) -> NewResult:
        asked = entry.chain.split(" ", 1)[0] if entry.chain else entry.url
        timings = fetched.timings
        metadata = {
            "http_status": fetched.status,
            "content_type": fetched.content_type,
            "bytes": fetched.wire_bytes,
            "depth": entry.depth,
            "seconds": round(timings.total, 4),
            "first_byte": round(timings.first_byte, 4),
        }
        if entry.chain:
            metadata["redirected_from"] = entry.chain.split()
        key = url_key(entry.url)
        return NewResult(
            url_id=entry.id,
            original_url=asked,
            original_key=key if asked is entry.url else url_key(asked),
            final_url=entry.url,
            final_key=key,
            data=reading.data,
            success=True,
            metadata=_encode(metadata).decode(),
        )

    # New URLs.

    def _discover(self, urls: list[str], links: Links) -> None:
        """Links of one page go to the fetchers that own their hosts; most are our own, or known."""
        if self._plan.fetchers == 1:
            self._judge(urls, links)
            return
        own: list[str] = []
        abroad: dict[int, list[str]] = {}
        owner_of, known = self._shards.owner_of, self._abroad
        for url in dict.fromkeys(urls):
            owner = owner_of(host_of(url))
            if owner == self.index:
                own.append(url)
            elif url not in known:
                abroad.setdefault(owner, []).append(url)
        self._judge(own, links)
        for owner, several in abroad.items():
            self._outbox.foreign(owner, links._replace(urls=several))

    def _judge(self, urls: Iterable[str], links: Links) -> None:
        """What is new among links to our hosts enters the ledger: to be fetched, or with the reason why not."""
        fresh = self.seen.add_all(urls)
        if not fresh:
            return
        found, judge = self._outbox.found, self._verdict
        depth, via, chain, found_on = links.depth, links.via, links.chain or None, links.found_on or None
        for url, digest in fresh:
            host = host_of(url)
            state, reason, detail = judge(url, host, depth, via)
            found.append(Found(key_of(digest), url, host, depth, state, reason, detail or chain, found_on, via))
        self._flush_soon()

    def _verdict(self, url: str, host: str, depth: int, via: str) -> tuple[str, str | None, str | None]:
        if via in _SITEMAP_VIAS:
            return QUEUED, None, None
        reason = self.scope.judge(url, host, depth)
        if reason is not None:
            return SKIPPED, reason, None
        trap = self._traps.judge(self._trap_host(host), url)
        if trap is not None:
            return SKIPPED, traps.TRAP, trap
        return QUEUED, None, None

    def _trap_host(self, name: str) -> traps.Host:
        host = self._trap_hosts.get(name)
        if host is None:
            host = self._trap_hosts[name] = traps.Host()
        return host

    # Reporting.

    def _flush_soon(self) -> None:
        if self._flush_later is None:
            self._flush_later = self._loop.call_later(self._tuning.flush_seconds, self._flush)

    def _flush(self) -> None:
        self._flush_later = None
        if self._outbox:
            self._desk.hand_in(self._outbox.pack(self.live()))

    def live(self) -> Live:
        urls = [entry.url for _, entry, _, _ in islice(self._flying.values(), 10)]
        return Live(self.in_flight, self.frontier.size, urls, [])

    # The end.

    def _cut_off(self) -> None:
        """What has not come by now stays queued in the ledger."""
        for _, _, _, exchange in self._flying.values():
            if exchange is not None:
                self._client.cancel(exchange)
        self._flying.clear()
        self._reading.clear()
        self._maybe_drained()

    def _maybe_drained(self) -> None:
        if self._running and not self._flying and not self._reading:
            self._running = False
            if self._flush_later is not None:
                self._flush_later.cancel()
            self._flush()
            self._desk.drained()


def open_client(plan: Plan) -> Client:
    """The HTTP client that a plan calls for."""
    tuning = plan.tuning
    settings = FetchSettings(
        user_agent=plan.user_agent,
        connect_timeout=tuning.connect_timeout,
        idle_timeout=tuning.idle_timeout,
        total_timeout=tuning.total_timeout,
        max_body=tuning.max_body,
        connections=max(64, plan.concurrency),
        proxy=plan.proxy,
        origin_headers=plan.origin_headers,
    )
    return Client(settings, Guard(map(parse_exemption, plan.allow_private)), SystemResolver())


def obey(fetcher: Fetcher, message: ToFetcher) -> None:
    """Do what a message of the leader says."""
    match message:
        case Committed():
            fetcher.committed(message)
        case Assigned():
            fetcher.assigned(message)
        case Incoming():
            fetcher.incoming(message)
        case Refilled():
            fetcher.refilled(message)
        case Known():
            fetcher.seen.load(array("q", message.keys))
        case Roots():
            for url in message.urls:
                fetcher.scope.add_root(url)
        case Go():
            fetcher.go()
        case Drain():
            fetcher.drain()
        case _:
            raise TypeError(f"a fetcher cannot be told {type(message).__name__}")

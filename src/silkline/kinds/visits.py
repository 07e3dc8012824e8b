"""Visits: many URLs at once, each asked for politely, hop by hop, until it is a page or there is a reason why not.

Knows hosts, their clocks and robots rules; knows nothing of the database or of what a page says. Every hop of a
redirect waits for the clock of its own host, obeys the robots.txt of its own origin, and passes the guard.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from silkline.crawl.frontier import Frontier, FrontierUrl, HostQueue
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.host_status import too_long
from silkline.crawl.plan import Plan
from silkline.crawl.politeness import retry_delay
from silkline.crawl.robots import RobotsCache, unreachable
from silkline.fetch.client import HttpClient
from silkline.fetch.robots import Robots
from silkline.model import fetched as reasons
from silkline.model import wait as waiting
from silkline.model.fetched import HOST_UNAVAILABLE, Fetched, Request, is_temporary, retry_after
from silkline.model.ledger import FAILED, SKIPPED
from silkline.model.url import canonical, host_of, origin_of

ROBOTS: Final = "robots"
ROBOTS_UNAVAILABLE: Final = "robots_unavailable"
DRAIN_SECONDS: Final = 1.0
_REFUSALS: Final = frozenset({"http_429", "http_503"})


class Visit(NamedTuple):
    """How the visit of one URL ended. With a `reason` there is no page; `fetched` is the last answer, if one came."""

    entry: FrontierUrl
    fetched: Fetched | None
    state: str | None = None
    reason: str | None = None
    detail: str = ""


OnEnd = Callable[[Visit], Awaitable[None]]
Show = Callable[[Fetched], Awaitable[Fetched]]
"""What is done with a page that came before it counts as had: letting its scripts run, which may lead elsewhere."""


class Visits:
    """Must be made and run inside an event loop. `on_end` is awaited once for each URL, before its place is free."""

    def __init__(
        self,
        plan: Plan,
        client: HttpClient,
        reader: GuardedReader,
        on_end: OnEnd,
        *,
        max_body: int | None = None,
        show: Show | None = None,
    ) -> None:
        self._plan = plan
        self._max_body = max_body
        self._tuning = plan.tuning
        self._client = client
        self._reader = reader
        self._on_end = on_end
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._frontier = Frontier(plan.pace, window=1 << 60, per_host=1 << 60)
        self._robots = RobotsCache(client, plan.user_agent.partition("/")[0].lower(), reader, ignore=plan.ignore_robots)
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: dict[int, str] = {}
        self._changed = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._broken: BaseException | None = None
        self.stopping = False

    @property
    def in_flight(self) -> int:
        return len(self._asking)

    def under_way(self, most: int = 10) -> list[str]:
        """Some of the URLs that are being asked for now."""
        return list(self._asking.values())[:most]

    def add(self, entry: FrontierUrl) -> None:
        """One more URL to visit."""
        self._frontier.offer(host_of(entry.url), entry, self._loop.time())
        self._changed.set()

    async def load_rules(self, origin: str) -> Robots:
        """The robots.txt of an origin, for who must know it before there is a URL to visit."""
        rules, failures = await self._robots.load(origin)
        if not failures and not self._plan.ignore_robots:
            clock = self._frontier.host(host_of(origin + "/")).clock
            clock.crawl_delay = max(clock.crawl_delay, rules.crawl_delay or 0.0)
        return rules

    def stop(self) -> None:
        """Start nothing more; what is under way has a moment to end."""
        self.stopping = True
        self._changed.set()

    async def run(self) -> None:
        """Until everything has been visited, or `stop` was called. What `on_end` raises is raised here."""
        try:
            while not self.stopping and (self._frontier.size or self._tasks):
                self._pump()
                await self._changed.wait()
                self._changed.clear()
                if self._broken is not None:
                    raise self._broken
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=DRAIN_SECONDS)
            if self._broken is not None:
                raise self._broken
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # Starting what may start.

    def _pump(self) -> None:
        now = self._loop.time()
        while len(self._asking) < self._plan.concurrency:
            taken = self._frontier.take(now)
            if taken is None:
                break
            self._begin(*taken, now)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        at = self._frontier.next_at()
        if at is not None and not self._tasks and at - now > self._tuning.longest_wait:
            self._give_up_long_waits(now)
            return
        if at is not None and len(self._asking) < self._plan.concurrency:
            self._alarm = self._loop.call_at(max(at, now + 0.001), self._changed.set)

    def _give_up_long_waits(self, now: float) -> None:
        """Nothing else is left to do: do not wait for hosts that asked to be left alone for too long."""
        longest = self._tuning.longest_wait
        for host in self._frontier.asleep_after(now + longest):
            said = too_long(host, now, longest)
            for entry in (*self._frontier.clear_host(host), *self._frontier.clear_retries(host)):
                self._asking[entry.id] = entry.url
                self._spawn(self._end(Visit(entry, None, FAILED, HOST_UNAVAILABLE, said)))

    def _begin(self, host: HostQueue, entry: FrontierUrl, now: float) -> None:
        rules = self._robots.of(origin_of(entry.url))
        if rules is None:
            self._frontier.put_back(host.name, entry, now)
            if not host.parked:
                host.parked = waiting.ROBOTS_LOADING
                self._spawn(self._introduce(host, origin_of(entry.url)))
            return
        if rules.group and not self._reader.allows(rules, entry.url):
            self._asking[entry.id] = entry.url
            why = ROBOTS_UNAVAILABLE if rules.reason else ROBOTS
            self._spawn(self._end(Visit(entry, None, SKIPPED, why, rules.explain(entry.url))))
            self._frontier.wake(host, now)
            return
        self._frontier.started(host, now)
        self._asking[entry.id] = entry.url
        self._spawn(self._ask(host, entry))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken = self._broken or task.exception()
        self._changed.set()

    # Getting to know a host.

    async def _introduce(self, host: HostQueue, origin: str) -> None:
        host.clock.started(self._loop.time())
        rules, failures = await self._robots.load(origin)
        now = self._loop.time()
        host.parked = ""
        if failures:
            await self._robots_missing(host, origin, rules, failures, now)
        else:
            host.clock.crawl_delay = max(host.clock.crawl_delay, rules.crawl_delay or 0.0)
            host.clock.next_at = now  # robots.txt was asked for its own sake; the first page need not wait for it
        self._frontier.wake(host, now)

    async def _robots_missing(self, host: HostQueue, origin: str, rules: Robots, failures: int, now: float) -> None:
        """Nothing may be fetched; try again a few times, then let the host be."""
        if failures < self._tuning.robots_tries and is_temporary(rules.reason):
            wait = retry_delay(failures, self._tuning.retry_base, self._tuning.retry_cap)
            wait = max(wait, rules.retry_after)
            host.clock.trouble = rules.reason or ""
            host.clock.sleep_until(now + wait, waiting.ROBOTS_UNAVAILABLE, wait)
            return
        for entry in list(self._frontier.clear_host(host)):
            if origin_of(entry.url) != origin:
                self._frontier.put_back(host.name, entry, now)
            elif unreachable(rules):
                await self._end(Visit(entry, None, FAILED, rules.reason, "robots.txt could not be asked for"))
            else:
                await self._end(Visit(entry, None, SKIPPED, ROBOTS_UNAVAILABLE, rules.explain(entry.url)))

    # One hop.

    async def _ask(self, host: HostQueue, entry: FrontierUrl) -> None:
        try:
            fetched = await self._client.fetch(Request(entry.url, max_body=self._max_body))
        finally:
            now = self._loop.time()
            self._frontier.ended(host, now)
        waited = self._note_pace(host, fetched, now)
        if self._show is not None and fetched.ok:
            fetched = await self._show(fetched)
        if fetched.reason == reasons.CLOSED:
            self._asking.pop(entry.id, None)
        elif fetched.redirect:
            await self._redirected(entry, fetched)
        elif fetched.reason is None:
            await self._end(Visit(entry, fetched))
        else:
            await self._failed(host, entry, fetched, waited)

    def _note_pace(self, host: HostQueue, fetched: Fetched, now: float) -> float:
        """Let the host's clock hear of the answer; the seconds that the host asked to be left alone."""
        reason, started = fetched.reason, now - fetched.timings.total
        if reason is None or not is_temporary(reason) or reason == reasons.MEMORY_FULL:
            host.clock.answered(now, fetched.timings.total)
            return 0.0
        if reason in _REFUSALS:
            wait = retry_after(fetched, time.time())
            host.clock.trouble = reason
            host.clock.refused(now, started, wait, self._tuning.longest_wait)
            return wait or 0.0
        host.clock.failed(now, started)
        return 0.0

    async def _redirected(self, entry: FrontierUrl, fetched: Fetched) -> None:
        target = canonical(fetched.location or "")
        chain = [*entry.chain.split(), entry.url]
        if target is None:
            await self._end(Visit(entry, fetched, FAILED, reasons.BAD_REDIRECT, fetched.location or ""))
        elif target in chain:
            await self._end(Visit(entry, fetched, FAILED, reasons.REDIRECT_LOOP, target))
        elif len(chain) > self._tuning.max_redirects:
            await self._end(Visit(entry, fetched, FAILED, reasons.TOO_MANY_REDIRECTS, target))
        else:
            self._asking.pop(entry.id, None)
            onward = entry._replace(url=target, chain=" ".join(chain), attempts=0)
            self._frontier.put_back(host_of(target), onward, self._loop.time())

    async def _failed(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched, waited: float) -> None:
        reason = fetched.reason or reasons.BAD_RESPONSE
        attempts = entry.attempts + 1
        hopeless = attempts >= self._tuning.tries or waited > self._tuning.longest_wait
        if not is_temporary(reason) or hopeless:
            detail = f"the server asks to be left alone for {waited:g} s" if waited else fetched.detail
            await self._end(Visit(entry, fetched, FAILED, reason, detail))
            return
        self._asking.pop(entry.id, None)
        wait = retry_delay(attempts, self._tuning.retry_base, self._tuning.retry_cap)
        at = max(self._loop.time() + wait, host.clock.next_at)
        self._frontier.retry(host.name, entry._replace(attempts=attempts), at)

    async def _end(self, visit: Visit) -> None:
        try:
            await self._on_end(visit)
        finally:
            self._asking.pop(visit.entry.id, None)

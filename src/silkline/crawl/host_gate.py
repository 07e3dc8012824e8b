"""Prepares a host for its first request: resolves the host, enforces the limit for its address, loads robots.txt."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Final

from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.host_bookings import UNUSED, HostBookings
from silkline.crawl.plan import Plan
from silkline.crawl.politeness import SHOWN_PAGE, Address, Clock, address_key
from silkline.crawl.robots_cache import RobotsCache
from silkline.crawl.scope import Scope
from silkline.crawl.unproven_hosts import UnprovenHosts
from silkline.fetch.client import HttpClient
from silkline.fetch.dns import Resolution
from silkline.fetch.origin import locate
from silkline.fetch.robots import Robots
from silkline.model import wait as reasons
from silkline.model.fetched import Fetched, Request
from silkline.model.url import host_of, origin_of

_MOST_ADDRESSES: Final = 50_000
OnIntroduced = Callable[[HostQueue, str, Robots, int], None]


class HostGate:
    """`on_introduced` gets the host, the URL, its robots rules, and how often in a row they could not be fetched."""

    def __init__(
        self,
        plan: Plan,
        client: HttpClient,
        frontier: Frontier,
        reader: GuardedReader,
        on_introduced: OnIntroduced,
        on_looked_up: Callable[[], None],
        bookings: HostBookings,
    ) -> None:
        self._plan = plan
        self._client = client
        self._frontier = frontier
        self._on_introduced = on_introduced
        self._on_looked_up = on_looked_up
        self._loop = asyncio.get_running_loop()
        self.bookings = bookings
        product, hops = plan.user_agent.partition("/")[0].lower(), _Hops(self, client)
        self._robots = RobotsCache(hops, product, reader, ignore=plan.ignore_robots, excludes=Scope(plan).excludes)
        self._addresses: dict[str, Address] = {}
        self._waiting: dict[Address, deque[HostQueue]] = {}
        self.unproven = UnprovenHosts(plan.concurrency, frontier, lambda: len(self._tasks))
        self._tasks: set[asyncio.Task[None]] = set()
        self._look_ups: set[asyncio.Task[None]] = set()
        self._looked_up: set[str] = set()

    def rules_for(self, host: HostQueue, url: str) -> Robots | None:
        """The robots rules for a URL. None: the host must be introduced first."""
        return self._robots.of(origin_of(url)) if host.address is not None else None

    @property
    def under_way(self) -> int:
        """Hosts whose robots.txt is being fetched, or whose time is being booked."""
        return len(self._tasks) - self.bookings.waiting + self.bookings.unanswered

    @property
    def busy(self) -> bool:
        """Whether a request or a DNS lookup is running. A lookup takes no request slot, because it may wait long for
        its turn."""
        return bool(self._tasks or self._look_ups or self.bookings.busy)

    async def load_rules(self, url: str) -> Robots:
        """Load the robots.txt for a URL before anything of its host is queued."""
        host = self._frontier.host(host_of(url))
        rules, failures = await self._load(host, url)
        if not failures and not self._plan.ignore_robots:
            host.clock.crawl_delay = max(host.clock.crawl_delay, rules.crawl_delay or 0.0)
        if not self.robots_count(host):
            host.clock.next_at = self._loop.time()
        return rules

    def robots_count(self, host: HostQueue) -> bool:
        """Whether the next request waits for the delay after the one for robots.txt. A `page` job does not wait if
        no other job uses the host."""
        if self._plan.tuning.robots_count:
            return True
        return host.clock.delay > 0 and host.booking is not None and host.booking.idle < UNUSED

    def introduce(self, host: HostQueue, url: str) -> int:
        """Park the host until its robots.txt or its address is loaded. Returns the number of requests started.

        A request for robots.txt needs what a page needs: a slot, room at the address, and a booking. A host that must
        wait for one of them is parked without a task, and comes here again.
        """
        host.parked = reasons.ROBOTS_LOADING
        name = self._name_to_look_up(url)
        if name and host.name not in self._looked_up:
            self._run(self._look_up(host, name), self._look_ups)
            return 0
        if self.unproven.free <= 0:
            self._step_aside(host)
            return 0
        self._looked_up.discard(host.name)
        if host.address is None and (key := self._key_of(url, host.name)) is not None:
            host.address = self._address(key, host.name)
        address = host.address
        if address is not None:
            if address.full:
                host.parked = reasons.ADDRESS
                self._waiting.setdefault(address, deque()).append(host)
                return 0
            if not self._plan.ignore_robots and not self.bookings.may_send(host):
                return 0
            address.in_flight += 1
        self._run(self._introduce(host, url, counted=address is not None), self._tasks)
        return 1

    def _step_aside(self, host: HostQueue) -> None:
        """The host waits for a slot. A quick host may be next at the same address."""
        self.unproven.wait(host)
        if host.address is not None and not host.address.full:
            self._wake_next(host.address, self._loop.time())

    def _run(self, work: Coroutine[None, None, None], tasks: set[asyncio.Task[None]]) -> None:
        task = self._loop.create_task(work)
        tasks.add(task)
        task.add_done_callback(partial(self._ended, tasks))

    def forget(self, names: list[str]) -> None:
        """Forget hosts that have nothing to do."""
        for name in names:
            self._robots.forget(name)
            self._looked_up.discard(name)
        if len(self._addresses) > _MOST_ADDRESSES:
            self._addresses = {key: address for key, address in self._addresses.items() if address.in_flight}
            self._waiting = {address: hosts for address, hosts in self._waiting.items() if hosts}

    def close(self) -> None:
        self.bookings.close()
        for task in (*self._tasks, *self._look_ups):
            task.cancel()

    # Addresses.

    def may_start(self, host: HostQueue, now: float) -> bool:
        """Whether the limit for its address and the booking of the host allow one more request. If not, it waits."""
        address = host.address
        if address is None:
            return False
        if not host.clock.quick and self.unproven.free <= 0:
            self._step_aside(host)
            return False
        why = _held_by(address)
        if why:
            host.parked = why
            self._waiting.setdefault(address, deque()).append(host)
            return False
        if not host.reserved:
            turn = address.reserve(now)
            if turn > now:
                host.reserved = True
                host.clock.sleep_until(turn, reasons.ADDRESS)
                return False
        host.reserved = not self.bookings.may_send(host)
        return not host.reserved

    def started(self, host: HostQueue) -> None:
        if host.address is not None:
            host.address.in_flight += 1
        self.unproven.started(host)

    def ended(self, host: HostQueue, now: float) -> None:
        self.unproven.ended(host)
        if host.address is not None:
            self._left(host.address, now)

    def _left(self, address: Address, now: float) -> None:
        """A request to this address has ended."""
        address.in_flight -= 1
        self._wake_next(address, now)

    def waits_to_be_read(self, host: HostQueue, size: int) -> None:
        """An answer of this size will be read later, by another process."""
        if host.address is not None:
            host.address.unread += size

    def was_read(self, host: HostQueue, size: int) -> None:
        if host.address is not None:
            host.address.unread -= size
            self._wake_next(host.address, self._loop.time())

    def waits_for_browser(self, host: HostQueue, size: int) -> None:
        """A page of this size will be rendered."""
        if host.address is not None:
            host.address.shown += max(size, SHOWN_PAGE)

    def was_shown(self, host: HostQueue, size: int) -> None:
        if host.address is not None:
            host.address.shown -= max(size, SHOWN_PAGE)
            self._wake_next(host.address, self._loop.time())

    def _wake_next(self, address: Address, now: float) -> None:
        waiting = self._waiting.get(address)
        while waiting and not address.behind and not address.unrendered:
            next_host = waiting.popleft()
            next_host.parked = ""
            self._frontier.wake(next_host, now)
            if next_host.queue:  # a host that was given up meanwhile uses no turn
                break

    def _name_to_look_up(self, url: str) -> str:
        """The name to resolve. Empty if there is none, or if its address is known."""
        target = locate(url)
        if self._plan.proxy or isinstance(target, str) or target.origin.literal:
            return ""
        name = target.origin.host
        return name if self._client.resolver.cached(name) is None else ""

    async def _look_up(self, host: HostQueue, name: str) -> None:
        """Fill the cache of the resolver. An error is handled later, when the host gets a request."""
        with suppress(Exception):  # the host must not stay parked, whatever error the resolver raises
            await self._client.resolver.resolve(name)
        self._looked_up.add(host.name)
        host.parked = ""
        self._frontier.wake(host, self._loop.time())
        self._on_looked_up()

    async def _introduce(self, host: HostQueue, url: str, *, counted: bool) -> None:
        if host.address is None:
            host.address = await self._address_of(url, host.name)
        rules, failures = self._robots.of(origin_of(url)), 0
        if rules is None:
            rules, failures = await self._load(host, url, counted=counted)
        elif counted:
            self._left(host.address, self._loop.time())
        host.parked = ""
        # The task counts as under way until it has ended. So the callback must run after that.
        self._loop.call_soon(self._on_introduced, host, url, rules, failures)

    async def _load(self, host: HostQueue, url: str, *, counted: bool = False) -> tuple[Robots, int]:
        """Load robots.txt. `counted`: the request counts against the limit for the address already."""
        address = host.address = host.address or await self._address_of(url, host.name)
        if not counted:
            address.in_flight += 1
        try:
            await self.bookings.turn(host)
            return await self._robots.load(origin_of(url))
        finally:
            self._left(address, self._loop.time())

    async def before_hop(self, url: str) -> Clock:
        """Wait until the clock of a host allows a request for a robots.txt, or for the target of its redirect."""
        host = self._frontier.host(host_of(url))
        # While this waits, the host may get other requests: for a page, or for the robots.txt of other hosts.
        while True:
            wait = host.clock.next_at - self._loop.time() if self.robots_count(host) else 0.0
            if wait > 0:
                await asyncio.sleep(wait)
            elif not await self.bookings.turn(host):
                break
        host.clock.started(time.monotonic())  # the event loop rounds its time down
        return host.clock

    async def _address_of(self, url: str, name: str) -> Address:
        """The shared address of a host. Behind a proxy, or if the name has no address, each host has its own."""
        key, target = self._key_of(url, name), locate(url)
        if key is None and not isinstance(target, str):
            key = _key(await self._client.resolver.resolve(target.origin.host), name)
        return self._address(key or name, name)

    def _key_of(self, url: str, name: str) -> str | None:
        """The name of the address of a host. None: it must be looked up first."""
        target = locate(url)
        if isinstance(target, str):
            return name
        if target.origin.literal or self._plan.proxy:
            return address_key(target.origin.literal) or name
        answer = self._client.resolver.cached(target.origin.host)
        return None if answer is None else _key(answer, name)

    def _address(self, key: str, name: str) -> Address:
        if key not in self._addresses:
            address = self._addresses[key] = Address(self._plan.pace, self._plan.fetchers, key if key != name else "")
            if self._plan.rendering is not None:  # enough for all browsers if it is the only address
                address.most_shown = max(address.most_shown, 2 * self._plan.rendering.count * SHOWN_PAGE)
        return self._addresses[key]

    def _ended(self, tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "preparing a host for requests failed", "exception": error})


def _key(answer: Resolution, name: str) -> str:
    return name if isinstance(answer, str) else address_key(answer[0])


def _held_by(address: Address) -> str:
    """Why no request may start; empty: one may."""
    if address.full:
        return reasons.ADDRESS
    if address.behind:
        return reasons.READING
    return reasons.RENDERING if address.unrendered else ""


class _Hops:
    """The client for robots.txt: each request, also after a redirect, waits for the host."""

    def __init__(self, gate: HostGate, client: HttpClient) -> None:
        self._gate = gate
        self._client = client

    async def fetch(self, request: Request) -> Fetched:
        clock = await self._gate.before_hop(request.url)
        fetched = await self._client.fetch(request)
        took = fetched.timings
        clock.reached(asyncio.get_running_loop().time() - took.total, took.connected, took.first_byte or took.total)
        return fetched

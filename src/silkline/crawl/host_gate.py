"""Prepares a host for its first request: resolves the host, enforces the limit for its address, loads robots.txt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from math import ceil
from operator import attrgetter
from typing import Final

from silkline.crawl.address_limit import SHOWN_PAGE, Address, address_key
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.host_bookings import UNUSED, HostBookings
from silkline.crawl.plan import Plan
from silkline.crawl.put_offs import PutOffs
from silkline.crawl.render_queue import RenderQueue
from silkline.crawl.request_place import Addresses, RequestPlace
from silkline.crawl.robots_cache import RobotsCache
from silkline.crawl.scope import Scope
from silkline.crawl.unproven_hosts import UnprovenHosts
from silkline.crawl.waiting_hosts import WaitingHosts
from silkline.fetch.client import HttpClient
from silkline.fetch.dns import Resolution
from silkline.fetch.origin import locate
from silkline.fetch.robots import Robots
from silkline.model import host_wait as reasons
from silkline.model.fetched import ADDRESS_BUSY, CONNECT_TIMEOUT, TIMEOUT, Fetched, Request
from silkline.model.url import host_of, origin_of

_LONGEST_TURN: Final = 30.0
"""So long a request for a robots.txt waits for a place at the address to which it was redirected."""
_LONGEST_SLEEP: Final = 60.0
"""So long a request for a robots.txt waits for the clock of its host: it holds a slot and a place meanwhile."""
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
        bookings.on_fewer = self._wake_next
        product, hops = plan.user_agent.partition("/")[0].lower(), _Hops(self, client)
        self._robots = RobotsCache(
            hops,
            product,
            reader,
            ignore=plan.ignore_robots,
            excludes=Scope(plan).excludes,
            in_use=self._needs_rules,
            address_of=self.address_of,
            clock=self._loop.time,
        )
        self._addresses = Addresses(plan, self._loop.time, self._wake_next)
        self._waiting: dict[Address, WaitingHosts] = {}
        self.unproven = UnprovenHosts(plan.concurrency, frontier, lambda: len(self._tasks))
        self.put_offs = PutOffs(frontier, reader, self._wake_many)
        self.every_put_offs = [self.put_offs]
        """Also those before browsers."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._look_ups: set[asyncio.Task[None]] = set()
        self._looked_up: set[str] = set()
        self._loading = 0

    def rules_for(self, host: HostQueue, url: str) -> Robots | None:
        """The robots rules for a URL. None: the host must be introduced first."""
        return self._robots.of(origin_of(url)) if host.address is not None else None

    def _needs_rules(self, origin: str) -> bool:
        """Whether a host has URLs, and may get a request soon."""
        host = self._frontier.hosts.get(host_of(origin))
        if host is None or not host.queue:
            return False
        return host.clock.next_at - self._loop.time() <= max(_LONGEST_SLEEP, 2 * host.clock.delay)

    @property
    def under_way(self) -> int:
        """Hosts whose robots.txt is being fetched, or whose time is being booked."""
        return len(self._tasks) + self._loading - self.bookings.waiting + self.bookings.unanswered

    @property
    def busy(self) -> bool:
        """Whether a request or a DNS lookup is running. A lookup takes no request slot, because it may wait long for
        its turn."""
        return bool(self._tasks or self._loading or self._look_ups or self.bookings.busy)

    async def load_rules(self, url: str) -> Robots:
        """Load the robots.txt for a URL before anything of its host is queued. Others may queue URLs of the host
        meanwhile: they wait for it."""
        host = self._frontier.host(host_of(url))
        parks = not host.parked
        if parks:
            host.parked = reasons.ROBOTS_LOADING
        self._loading += 1
        try:
            return await self._load_first(host, url)
        finally:
            self._loading -= 1
            if parks:
                host.parked = ""
                self._frontier.wake(host, self._loop.time())
            self._on_looked_up()

    async def _load_first(self, host: HostQueue, url: str) -> Robots:
        host.address = host.address or await self._address_of(url)
        await self._turn_at(host.address, host.name, quick=host.clock.quick)
        place = self._place(host, host.address)
        try:
            rules, failures = await self._load(host, url, place)
        finally:
            place.leave(self._loop.time())
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
        if host.address is None and (key := self._key_of(url)) is not None:
            host.address = self._addresses.at(key)
        address = host.address
        if address is not None and not self._may_introduce(host, url, address):
            return 0
        place = self._place(host, address) if address is not None else None
        self._run(self._introduce(host, url, place), self._tasks)
        return 1

    def _may_introduce(self, host: HostQueue, url: str, address: Address) -> bool:
        now = self._loop.time()
        if self._plan.ignore_robots:
            return self._has_room(host, address, now)
        if not host.clock.usual and address.is_silent(_port_of(url), now):
            # As if the request had failed. It would hold a place until its connection times out.
            self._loop.call_soon(self._was_not_reached, host, url)
            self._wake_next(address, now)
            return False
        return self._has_room(host, address, now) and self.bookings.may_send(host)

    def _was_not_reached(self, host: HostQueue, url: str) -> None:
        host.parked = ""
        self._on_introduced(host, url, *self._robots.unreachable(origin_of(url), CONNECT_TIMEOUT))

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
        if not self._has_room(host, address, now):
            return False
        if not host.reserved:
            turn = address.reserve(now)
            if turn > now:
                host.reserved = True
                host.clock.sleep_until(turn, reasons.ADDRESS)
                return False
        host.reserved = not self.bookings.may_send(host)
        return not host.reserved

    def started(self, host: HostQueue) -> RequestPlace | None:
        """A request for a page begins. Returns its place at the address."""
        self.unproven.started(host)
        return self._place(host, host.address) if host.address is not None else None

    def ended(self, host: HostQueue, place: RequestPlace | None, now: float) -> None:
        """The request has ended, and its answer was noted: a host that must wait now does not get the free place."""
        self.unproven.ended(host)
        if place is not None:
            place.leave(now)

    def follow(self, host: HostQueue, place: RequestPlace, *, reached: bool) -> None:
        """The address of a host is the one that its requests go to. A name may get another one at any time."""
        if reached:
            place.reached()
        home = place.home(reached=reached)
        if home is not None and host.address is not None and home is not host.address and not host.held:
            host.address, host.reserved = home, False

    def _place(self, host: HostQueue, address: Address) -> RequestPlace:
        return self._addresses.place(address, quick=host.clock.quick, is_new=not host.clock.usual)

    def _has_room(self, host: HostQueue, address: Address, now: float) -> bool:
        """Whether the address has a place for the host. If not, the host waits for one."""
        quick = host.clock.quick
        if not quick and address.rests_until > now:
            host.parked = ""
            host.clock.sleep_until(address.rests_until, reasons.ADDRESS)
            return False
        why = _held_by(address, quick=quick)
        if not why and not quick and address.crowded and not self.bookings.has_time(host):
            why = reasons.ADDRESS
        if not why:
            return True
        host.parked = why
        self._waiting.setdefault(address, WaitingHosts()).put(host.name, host, quick=quick)
        if not quick:  # there may be a place for a quick one
            self._wake_next(address, now)
        return False

    async def wait_for_place(self, name: str, place: RequestPlace) -> None:
        """Wait for the place that a request for robots.txt did not get, because it was redirected to a busy address.

        It gives its first place back before, so requests cannot wait for each other in a circle.
        """
        address = place.refused_by
        if address is None:
            return
        place.leave(self._loop.time())
        await self._turn_at(address, name, quick=False)
        place.take(address, self._loop.time())

    async def _turn_at(self, address: Address, name: str, *, quick: bool) -> None:
        """Wait for a place at an address, and for its moment. The caller takes the place at once."""
        moment = None
        while moment is None or _held_by(address, quick=quick):
            if not _held_by(address, quick=quick):
                now = self._loop.time()
                moment = address.reserve(now)
                await asyncio.sleep(moment - now)
                continue
            turn = self._loop.create_future()
            self._waiting.setdefault(address, WaitingHosts()).put(name, turn, quick=quick)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # the turn came at the same moment
                    self._wake_next(address, self._loop.time())
                raise

    def address_of(self, name: str) -> str:
        """The name of the address of a host; empty if it is not known."""
        host = self._frontier.hosts.get(name)
        return host.address.key if host is not None and host.address is not None else ""

    def waits_to_be_read(self, host: HostQueue, size: int) -> None:
        """An answer of this size will be read later, by another process."""
        if host.address is not None:
            host.address.unread += size
            host.held += size

    def was_read(self, host: HostQueue, size: int) -> None:
        if host.address is not None:
            host.address.unread -= size
            host.held -= size
            self._wake_many(host.address, self._loop.time())

    def waits_for_browser(self, host: HostQueue, size: int) -> None:
        """A page of this size will be rendered."""
        if host.address is not None:
            host.address.shown += max(size, SHOWN_PAGE)
            host.held += max(size, SHOWN_PAGE)

    def put_offs_before(self, render_queue: RenderQueue) -> PutOffs:
        """The URLs whose pages have no room before the browsers."""
        put_offs = PutOffs(self._frontier, render_queue, self._wake_many, attrgetter("unshown_urls"))
        render_queue.address_of, render_queue.on_arrived = self.address_of, put_offs.arrived
        self.every_put_offs.append(put_offs)
        return put_offs

    def was_shown(self, host: HostQueue, size: int) -> None:
        if host.address is not None:
            host.address.shown -= max(size, SHOWN_PAGE)
            host.held -= max(size, SHOWN_PAGE)
            self._wake_many(host.address, self._loop.time())

    def pass_turn(self, host: HostQueue, now: float) -> None:
        """The host needed no place for its URL. Others may wait for the one that it would have taken."""
        if host.address is not None:
            self._wake_next(host.address, now)

    def wake_idle(self) -> None:
        """Wake hosts that wait for an address without any request. Called at intervals: whatever happens to the host
        whose turn it was, the others do not wait for ever."""
        now = self._loop.time()
        for address in [address for address in self._waiting if not address.in_flight]:
            self._wake_many(address, now)

    def _wake_many(self, address: Address, now: float) -> None:
        """Wake as many hosts as have a place: all of them were held up. If they must wait for their moment anyway, one
        of them is enough."""
        self._wake_next(address, now, 1 if address.backlog(now) else address.most - address.in_flight)

    def _wake_next(self, address: Address, now: float, room: int = 1) -> None:
        waiting = self._waiting.get(address)
        if waiting is None or address.behind or address.unrendered:
            return
        while room > 0 and (next_one := waiting.take(address, now)) is not None:
            if isinstance(next_one, asyncio.Future):
                if not next_one.done():  # otherwise it has waited too long
                    next_one.set_result(None)
                    room -= 1
                continue
            next_one.parked = ""
            self._frontier.wake(next_one, now)
            # A host that sleeps, or was given up meanwhile, uses no turn.
            if next_one.queue and next_one.address is address and next_one.clock.next_at <= now:
                room -= 1
        if not waiting:
            del self._waiting[address]

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

    async def _introduce(self, host: HostQueue, url: str, place: RequestPlace | None) -> None:
        if place is None:
            host.address = await self._address_of(url)
            if _held_by(host.address, quick=host.clock.quick):  # it comes again, and waits for its turn
                host.parked = ""
                self._frontier.wake(host, self._loop.time())
                self._loop.call_soon(self._on_looked_up)
                return
            place = self._place(host, host.address)
        rules, failures = self._robots.of(origin_of(url)), 0
        try:
            if rules is None:
                rules, failures = await self._load(host, url, place)
        finally:
            place.leave(self._loop.time())
        host.parked = ""
        # The task counts as under way until it has ended. So the callback must run after that.
        self._loop.call_soon(self._on_introduced, host, url, rules, failures)

    async def _load(self, host: HostQueue, url: str, place: RequestPlace) -> tuple[Robots, int]:
        """Load robots.txt. The request has its place at the address already."""
        await self.bookings.turn(host)
        return await self._robots.load(origin_of(url), place)

    async def before_hop(self, url: str) -> tuple[HostQueue, float]:
        """Wait until the clock of a host allows a request for a robots.txt, or for the target of its redirect.

        Returns the host, and the seconds that are left if it asks for more than a request should wait.
        """
        host = self._frontier.host(host_of(url))
        # While this waits, the host may get other requests: for a page, or for the robots.txt of other hosts.
        while True:
            wait = host.clock.next_at - self._loop.time() if self.robots_count(host) else 0.0
            if wait > max(_LONGEST_SLEEP, 2 * host.clock.delay):  # a job may choose a long delay
                return host, wait
            if wait > 0:
                await asyncio.sleep(wait)
            elif not await self.bookings.turn(host):
                break
        host.clock.started(time.monotonic())  # the event loop rounds its time down
        return host, 0.0

    async def _address_of(self, url: str) -> Address:
        """The shared address of a host. Behind a proxy, or if the name has no address, each host has its own."""
        key, target = self._key_of(url), locate(url)
        if key is None and not isinstance(target, str):
            key = self._key(await self._client.resolver.resolve(target.origin.host), target.origin.port)
        return self._addresses.at(key or "")

    def _key_of(self, url: str) -> str | None:
        """The key of the address of a host, empty if it has none. None: its name must be looked up first."""
        target = locate(url)
        if isinstance(target, str):
            return ""
        origin = target.origin
        if origin.literal or self._plan.proxy:
            return address_key(origin.literal)
        answer = self._client.resolver.cached(origin.host)
        return None if answer is None else self._key(answer, origin.port)

    def _key(self, answer: Resolution, port: int) -> str:
        """The key of the first address that the guard allows. The client connects to this one."""
        if isinstance(answer, str):
            return ""
        check = self._client.guard.check
        return next((address_key(address) for address in answer if check(address, port) is None), "")

    def _ended(self, tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "preparing a host for requests failed", "exception": error})


def _port_of(url: str) -> int:
    target = locate(url)
    return 0 if isinstance(target, str) else target.origin.port


def _held_by(address: Address, *, quick: bool) -> str:
    """Why no request may start; empty: one may."""
    if address.full_for(quick=quick):
        return reasons.ADDRESS
    if address.behind:
        return reasons.READING
    return reasons.RENDERING if address.unrendered else ""


class _Hops:
    """The client for robots.txt: each request, also after a redirect, waits for the host, and for its address."""

    def __init__(self, gate: HostGate, client: HttpClient) -> None:
        self._gate = gate
        self._client = client

    async def fetch(self, request: Request, place: RequestPlace | None) -> Fetched:
        fetched = await self._once(request, place)
        if place is None or fetched.reason != ADDRESS_BUSY:
            return fetched
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_TURN):
                await self._gate.wait_for_place(host_of(request.url), place)
        return await self._once(request, place) if place.address is not None else fetched

    async def _once(self, request: Request, place: RequestPlace | None) -> Fetched:
        host, asleep = await self._gate.before_hop(request.url)
        if asleep:  # as if the host had answered that, now
            return Fetched(request.url, reason=TIMEOUT, headers={"retry-after": str(ceil(asleep))})
        fetched = await self._client.fetch(request, place)
        took = fetched.timings
        sent = asyncio.get_running_loop().time() - took.total
        host.clock.reached(sent, took.connected, took.first_byte or took.total)
        if place is not None:
            self._gate.follow(host, place, reached=bool(fetched.address))
        return fetched

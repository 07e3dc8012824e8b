"""Hosts that share addresses, with a gate and a client that answers when it is told to. No network."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from silkline.crawl.address_limit import Address
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.host_bookings import HostBookings
from silkline.crawl.host_gate import HostGate
from silkline.crawl.messages import Book
from silkline.crawl.plan import PACES, Plan
from silkline.crawl.request_place import RequestPlace
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch import robots
from silkline.fetch.dns import Resolution
from silkline.fetch.guard import Guard
from silkline.fetch.robots import Robots
from silkline.kinds.site import plan_of
from silkline.model.fetched import Fetched, Request
from silkline.model.spec import SiteSpec

REAL = "93.184.215.14"
OTHER = "93.184.215.99"
NORMAL = PACES["normal"]


class Client:
    """Names that are looked up already, and answers that arrive when `answer` is set."""

    def __init__(self, names: dict[str, Resolution]) -> None:
        self.names = names
        self.guard = Guard()
        self.resolver = self
        self.answer = asyncio.Event()
        self.at_once: dict[str, int] = {}
        self.most: dict[str, int] = {}

    def cached(self, host: str) -> Resolution | None:
        return self.names.get(host)

    async def fetch(self, request: Request, place: RequestPlace) -> Fetched:
        """As the real client: the place decides on the address. A file of `from-N` is at `to-N`."""
        name = request.url.split("/")[2].partition(":")[0]
        address = self.names[name][0]
        if (refused := place.enter(address, 80)) is not None:
            return Fetched(request.url, reason=refused)
        self.at_once[address] = self.at_once.get(address, 0) + 1
        self.most[address] = max(self.most.get(address, 0), self.at_once[address])
        await self.answer.wait()
        await asyncio.sleep(0)
        self.at_once[address] -= 1
        location = request.url.replace("from-", "to-") if "from-" in name else None
        return Fetched(request.url, 302 if location else 404, None if location else "http_404", location=location)


class Reader:
    async def robots(self, answer: Fetched, _origin: str, now: float, product: str) -> Robots:
        return robots.decide(answer, now, product)


class Scene:
    """A gate, and what it tells the pump."""

    def __init__(self, names: dict[str, Resolution] | None = None, *, fetchers: int = 1, booked: bool = True) -> None:
        spec = SiteSpec(url="https://a.example/", speed="normal")
        self.plan: Plan = plan_of(spec, fetchers=fetchers, concurrency=400, rendering=None)
        self.frontier = Frontier(self.plan.pace, window=1_000, per_host=10)
        self.client = Client(names or {})
        self.introduced: list[tuple[str, str | None, int]] = []
        client: Any = self.client
        reader: Any = Reader()
        self.asked: list[str] = []
        bookings = HostBookings(self.plan, self.frontier, self._book, lambda: None)
        if booked:
            bookings._is_open = lambda _host, _now: True  # type: ignore[method-assign]
        self.gate = HostGate(self.plan, client, self.frontier, reader, self._introduced, lambda: None, bookings)

    def _introduced(self, host: HostQueue, _url: str, rules: Robots, failures: int) -> None:
        self.introduced.append((host.name, rules.reason, failures))

    def _book(self, message: Book) -> None:
        self.asked += [each.host for each in message.hosts]

    def introduce(self, name: str) -> int:
        self.frontier.put_back(name, FrontierUrl(0, 1, f"http://{name}/", 0), 0.0)
        return self.gate.introduce(self.frontier.host(name), f"http://{name}/")

    def host(self, name: str, address: Address, *, quick: bool) -> HostQueue:
        host = self.frontier.host(name)
        self.frontier.put_back(name, FrontierUrl(0, 1, f"http://{name}/", 0), 0.0)
        host.address, host.reserved = address, True
        if quick:
            host.clock.answered(0.0, 0.2)
        return host

    def at(self, address: str) -> Address:
        return self.gate._addresses.at(address)

    def start(self, host: HostQueue) -> RequestPlace:
        host.reserved = True
        assert self.gate.may_start(host, now())
        place = self.gate.started(host)
        assert place is not None
        return place


def now() -> float:
    return asyncio.get_running_loop().time()


def in_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


# The limit holds for the address that a request connects to.

"""No URL and no host waits for ever, whatever hosts, addresses and the reader do.

A real fetcher, with a simulated web and a simulated reader, in virtual time. A part of the runs has no look at
intervals (`look_after_waits`): then every wait must end by an event of its own.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from silkline.crawl.fetcher import Fetcher
from silkline.crawl.isolated_reader import LEAST_BYTES
from silkline.crawl.messages import Batch, Book, Committed, Go, Granted, HostTime, Refilled, Roots
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.reading import READ_LATER, Body, Reading
from silkline.crawl.request_place import RequestPlace
from silkline.crawl.suspects import Suspects
from silkline.fetch import robots
from silkline.fetch.guard import Guard
from silkline.fetch.robots import Robots
from silkline.model.fetched import TIMEOUT, Fetched, Request, Timings
from silkline.model.ledger import QueuedUrl
from silkline.model.spec import SiteSpec
from tests.support.effort import examples
from tests.support.virtual_loop import run_virtually

DAY = 86_400
LONGEST = 8 * 3600
"""Virtual seconds: a crawl that waits for a host that asks for a day takes longer."""
NEVER = 1e9
SMALL, BIG, HUGE = b"small", bytes(1 << 20), bytes(5 << 20)


class Answer(NamedTuple):
    """One answer: its body, or its failure."""

    body: bytes = SMALL
    reason: str = ""
    retry_after: int = 0
    seconds: float = 0.01


class Site(NamedTuple):
    """A host: its address, its Crawl-delay, and the answers of each of its pages; the last answer is repeated."""

    address: int
    crawl_delay: int
    pages: list[list[Answer]]
    secure: float = 0.0
    """If not 0: the pages after the first use https, and its robots.txt redirects after so many seconds."""
    robots: Answer = Answer(reason="http_404")
    """What a host without a Crawl-delay answers."""
    moved_to: int | None = None
    """The number of the host that has the robots.txt for https."""

    def url(self, name: str, page: int) -> str:
        return f"http{'s' if self.secure and page else ''}://{name}.example/{page}"


class Web:
    """Implements what the engine uses of `HttpClient`."""

    def __init__(self, sites: list[Site]) -> None:
        self._sites = sites
        self._asked: dict[str, int] = {}
        self.guard = Guard()
        self.resolver = self

    def _site(self, name: str) -> Site:
        return self._sites[int(name.partition(".")[0][1:])]

    def cached(self, name: str) -> tuple[str, ...]:
        return (f"93.184.216.{self._site(name).address}",)

    async def fetch(self, request: Request, place: RequestPlace) -> Fetched:
        name = request.url.split("/")[2]
        delay, secure = self._site(name).crawl_delay, self._site(name).secure
        if secure and request.url == f"https://{name}/robots.txt":
            await asyncio.sleep(secure)
            moved = self._fetched(request, place, Answer(reason="http_302"))
            to = self._site(name).moved_to
            there = name if to is None else f"h{to % len(self._sites)}.example"
            return msgspec.structs.replace(moved, reason=None, location=f"https://{there}/moved.txt")
        if not delay:
            await asyncio.sleep(self._site(name).robots.seconds)
            return self._fetched(request, place, self._site(name).robots)
        await asyncio.sleep(0.01)
        return self._fetched(request, place, Answer(b"User-agent: *\nCrawl-delay: %d\n" % delay))

    def start(self, request: Request, on_done: Callable[[Fetched], None], place: RequestPlace) -> None:
        name, page = request.url.split("/")[2:]
        answers = self._site(name).pages[int(page)]
        number = self._asked.get(request.url, 0)
        self._asked[request.url] = number + 1
        answer = answers[min(number, len(answers) - 1)]
        fetched = self._fetched(request, place, answer)
        asyncio.get_running_loop().call_later(answer.seconds, on_done, fetched)

    def _fetched(self, request: Request, place: RequestPlace, answer: Answer) -> Fetched:
        address = self.cached(request.url.split("/")[2])[0]
        if (refused := place.enter(address, 80)) is not None:
            return Fetched(request.url, reason=refused)
        took = Timings(0.01, answer.seconds, answer.seconds)
        if answer.reason == TIMEOUT:
            return Fetched(request.url, reason=TIMEOUT, timings=took)
        status = int(answer.reason.rpartition("_")[2]) if answer.reason else 200
        headers = {"retry-after": str(answer.retry_after)} if answer.retry_after else {}
        body, kind = (b"", "") if answer.reason else (answer.body, "text/plain")
        return Fetched(request.url, status, answer.reason or None, headers, body, kind, address=address, timings=took)

    def cancel(self, _exchange: object) -> None: ...
    def close(self) -> None: ...


class SlowReader:
    """Implements what the engine uses of `GuardedReader`: large inputs are read one after the other."""

    full = False
    at_parsers = 0

    def __init__(self, capacity: int, seconds: float, *, evicts: bool) -> None:
        self._seconds = seconds
        self._evicts = evicts
        self._queue: deque[tuple[Body, int, Callable[[Reading], None]]] = deque()
        self._turn = 0
        self.room = capacity
        self.suspects = Suspects()
        self.address_of: Callable[[str], str] = lambda host: ""

    @property
    def isolated(self) -> int:
        return len(self._queue)

    def place_of(self, _host: str) -> float:
        self._turn += 1
        return float(self._turn * 7 % 5)

    def allows(self, _rules: Robots, _url: str) -> bool:
        return True

    async def robots(self, answer: Fetched, _origin: str, now: float, product: str) -> Robots:
        return robots.decide(answer, now, product)

    def read(self, body: Body, on_done: Callable[[Reading], None], *, may_wait: bool = False) -> None:
        if len(body.body) < len(BIG):
            on_done(Reading(body.id, data="{}"))
            return
        size = max(len(body.body), LEAST_BYTES)
        if self._queue and size > self.room and self._evicts and len(self._queue) > 1:
            last, freed, on_last = self._queue.pop()
            self.room += freed
            on_last(Reading(last.id, READ_LATER))
        if self._queue and size > self.room:
            on_done(Reading(body.id, READ_LATER))
            return
        self.room -= size
        self._queue.append((body, size, on_done))
        if len(self._queue) == 1:
            asyncio.get_running_loop().call_later(self._seconds, self._read_one)

    def _read_one(self) -> None:
        body, size, on_done = self._queue.popleft()
        self.room += size
        if self._queue:
            asyncio.get_running_loop().call_later(self._seconds, self._read_one)
        on_done(Reading(body.id, data="{}"))

    def close(self) -> None: ...


class Ledger:
    """Implements `LeaderInbox`."""

    def __init__(self, rows: list[QueuedUrl]) -> None:
        self._rows = rows
        self._loop = asyncio.get_running_loop()
        self.fetcher: Fetcher
        self.ended: dict[int, str | None] = {}
        self.finished = asyncio.Event()

    def hand_in(self, batch: Batch) -> None:
        settled = [each for each, _ in batch.settled if each.state != "queued"]
        for each in (*settled, *(page.settled for page in batch.pages)):
            assert each.id not in self.ended, "it ended twice"
            self.ended[each.id] = each.reason
        self._loop.call_later(0.5, self.fetcher.receive, Committed([batch.seq], None))
        if len(self.ended) == len(self._rows):
            self.finished.set()

    def ask_for_more(self, cursor: int, foreign: bool, /) -> None:
        rows = self._rows if not cursor else []
        self._loop.call_soon(self.fetcher.receive, Refilled(rows, len(self._rows), end=True))

    def book(self, message: Book) -> None:
        now = self._loop.time()
        granted = [HostTime(each.host, now, now + each.length, "", 999.0) for each in message.hosts]
        self._loop.call_soon(self.fetcher.receive, Granted(granted))

    def show(self, _status: object) -> None: ...
    def drained(self) -> None: ...


class Run(NamedTuple):
    ended: dict[str, str | None]
    left: dict[str, Any]
    seconds: float


def crawl(sites: list[Site], reader: Callable[[], SlowReader], look_seconds: float, longest: float = LONGEST) -> Run:
    """Crawl all pages, for a limited virtual time. `left`: what still waits afterwards."""

    async def work() -> Run:
        began = asyncio.get_running_loop().time()
        plan = plan_of(SiteSpec(url="http://h0.example/0"), fetchers=1, concurrency=8)
        plan = msgspec.structs.replace(plan, tuning=msgspec.structs.replace(plan.tuning, look_seconds=look_seconds))
        urls = [site.url(f"h{host}", page) for host, site in enumerate(sites) for page in range(len(site.pages))]
        ledger = Ledger(
            [QueuedUrl(id, id, url, url.split("/")[2], 0, 0, "seed", None) for id, url in enumerate(urls, 1)]
        )
        web: Any = Web(sites)
        slow: Any = reader()
        fetcher = ledger.fetcher = Fetcher(0, plan, web, slow, ledger)
        fetcher.receive(Roots(urls))
        fetcher.receive(Go())
        try:
            async with asyncio.timeout(longest):
                await ledger.finished.wait()
        except TimeoutError:
            pass
        took = asyncio.get_running_loop().time() - began
        await asyncio.sleep(100)  # until every request has ended
        fetcher.close()
        ended = {url: ledger.ended[id] for id, url in enumerate(urls, 1) if id in ledger.ended}
        return Run(ended, waiting(fetcher, urls, ended), took)

    return run_virtually(work)


def waiting(fetcher: Fetcher, urls: list[str], ended: dict[str, str | None]) -> dict[str, Any]:
    addresses = {id(host.address): host.address for host in fetcher._frontier.hosts.values() if host.address}.values()
    found = {
        "urls": [url for url in urls if url not in ended],
        "put off": len(fetcher.gate.put_offs),
        "parked": {host.name: host.parked for host in fetcher._frontier.hosts.values() if host.parked},
        "counted": [
            (a.in_flight, a.unread_urls.waiting, a.unread)
            for a in addresses
            if a.in_flight or a.unread_urls.waiting or a.unread
        ],
    }
    return {name: value for name, value in found.items() if value}


class Scene(NamedTuple):
    """Hosts and a reader, chosen by a seed."""

    sites: list[Site]
    capacity: int
    seconds: float
    evicts: bool
    look_seconds: float

    def reader(self) -> SlowReader:
        return SlowReader(self.capacity, self.seconds, evicts=self.evicts)


def any_scene(chance: Random) -> Scene:
    """Most pages need the reader, and it has little room."""

    def answer() -> Answer:
        return Answer(
            chance.choice([SMALL, BIG, BIG, HUGE, HUGE]),
            chance.choice(["", "", "", "", "", "http_429", "http_503", TIMEOUT]),
            chance.choice([0, 20, 400, DAY]),
            chance.choice([0.01, 0.01, 4.0, 40.0]),
        )

    def site() -> Site:
        pages = [[answer() for _ in range(chance.randint(1, 4))] for _ in range(chance.randint(1, 6))]
        rules = chance.choice([answer(), Answer(reason="http_404"), Answer(reason="http_404")])
        to, secure = chance.choice([None, chance.randint(0, 7)]), chance.choice([0.0, 0.0, 4.0])
        return Site(chance.randint(1, 3), chance.choice([0, 0, 4, 30]), pages, secure, rules, to)

    return Scene(
        [site() for _ in range(chance.randint(2, 8))],
        chance.choice([5, 6, 12]) << 20,
        chance.choice([0.5, 5.0, 30.0]),
        chance.random() < 0.5,
        chance.choice([NEVER, 10.0]),
    )


@pytest.mark.parametrize("part", range(10))
def test_every_url_ends(part: int) -> None:
    for seed in range(examples(6, 400)):
        scene = any_scene(Random(f"{part}-{seed}"))
        run = crawl(scene.sites, scene.reader, scene.look_seconds)
        assert run.left == {}, (seed, scene)


# The ways in which a URL or a host was, or could be, left without an event that wakes it.

LATE = [Answer(reason="http_429", retry_after=DAY)]
FILLER = Site(3, 0, [[Answer(BIG)]])
"""Its page is before the reader for 20 seconds, and there is room for one."""
SLEEPER = Site(1, 0, [[Answer(BIG, seconds=1.0)], [Answer(BIG, seconds=4.0)], LATE])
"""Two of its URLs are put off. Then it asks for a day."""


def room_for_one() -> SlowReader:
    return SlowReader(len(BIG), 20.0, evicts=False)


def good(address: int, pages: int = 20) -> Site:
    return Site(address, 0, [[Answer()]] * pages)


def big(address: int, *later: Answer, pages: int = 1, crawl_delay: int = 0) -> Site:
    return Site(address, crawl_delay, [[Answer(BIG, seconds=1.0), *later]] * pages)


@pytest.mark.parametrize("look_seconds", [NEVER, 1.0])
@pytest.mark.parametrize(
    "sites",
    [
        pytest.param([big(1, crawl_delay=30), big(2, crawl_delay=30)], id="the host has a long delay"),
        pytest.param([FILLER, big(1, pages=4, crawl_delay=30)], id="several URLs of one host with a long delay"),
        pytest.param([FILLER, SLEEPER], id="the host asks for a day, and is all that is left"),
        pytest.param([FILLER, SLEEPER, good(1)], id="the host asks for a day, and others share its address"),
        pytest.param(
            [FILLER, big(1, Answer(BIG, seconds=50.0)), big(2)], id="the room is kept for an answer that does not come"
        ),
        pytest.param(
            [FILLER, big(1, *LATE, pages=2), big(1, pages=2), big(2)], id="the host asks for a day the second time"
        ),
        pytest.param(
            [Site(1, 0, [[Answer(reason="http_429", retry_after=DAY, seconds=2.0)], [Answer()]], secure=4.0)],
            id="the host asks for a day while its robots.txt redirects",
        ),
        pytest.param([FILLER, big(1, Answer(reason=TIMEOUT), pages=12), good(1)], id="the host fails, and is given up"),
    ],
)
def test_each_way_to_wait_has_an_end(sites: list[Site], look_seconds: float) -> None:
    assert crawl(sites, room_for_one, look_seconds).left == {}


def test_a_host_does_not_wait_for_the_sleep_of_another_at_its_address() -> None:
    """The sleeping one is given up only when nothing else is left to do, and that may take days."""
    others = [FILLER, SLEEPER, Site(2, 30, [[Answer()]] * 200)]
    run = crawl([good(1), *others], room_for_one, NEVER, longest=600.0)
    assert len(run.left["urls"]) > 100, "the crawl goes on"
    assert [url for url in run.left["urls"] if "h0." in url] == []

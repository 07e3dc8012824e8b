"""URLs without room before the reader: each of them is looked at again, or ends with its host."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from silkline.crawl.answers import Answers
from silkline.crawl.endings import Endings
from silkline.crawl.fetcher_gauges import FetcherGauges
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.pump import Pump
from silkline.crawl.reading import READ_LATER, Body, Reading
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.robots import ALLOW_ALL, Robots
from silkline.model import host_wait as reasons
from silkline.model.fetched import HOST_UNAVAILABLE, Fetched
from silkline.model.spec import SiteSpec
from tests.unit.test_answers import OneResultEach

PLAN = plan_of(SiteSpec(url="http://a.example/"), fetchers=1, concurrency=8)
SIZE = 1 << 20


class FullReader:
    """Reads nothing: every input is put off."""

    full = False
    isolated = 0

    def __init__(self) -> None:
        self.room = 0
        self.address_of: Callable[[str], str] = lambda host: ""

    def place_of(self, _host: str) -> float:
        return 0.0

    def read(self, body: Body, on_done: Callable[[Reading], None], *, may_wait: bool = False) -> None:
        assert may_wait
        on_done(Reading(body.id, READ_LATER))


class Scene:
    """A pump that starts no request, because no host has anything to do."""

    def __init__(self, **tuning: Any) -> None:
        plan = msgspec.structs.replace(PLAN, tuning=msgspec.structs.replace(PLAN.tuning, **tuning))
        self.reader = FullReader()
        self.frontier, self.outbox = Frontier(plan.pace, window=100, per_host=10), Outbox()
        purpose: Any = OneResultEach()
        purpose.introduced = self._do
        nothing: Any = None
        reader: Any = self.reader
        self.endings = Endings(plan.tuning, self.frontier, self.outbox, purpose, lambda: None)
        parts = (self.frontier, self.outbox, self.endings)
        self.answers = Answers(plan, reader, None, *parts, purpose, FetcherGauges(0.0), lambda: None)
        self.pump = Pump(plan, nothing, reader, *parts, self.answers, purpose, self._do, self._do, self._do, self._do)
        self.put_offs = self.pump.gate.put_offs
        self._ids = 0

    def _do(self, *_: object) -> None: ...

    def host(self, name: str, address: str = "93.184.215.14") -> HostQueue:
        host = self.frontier.host(name)
        host.address = self.pump.gate._addresses.at(address)
        return host

    def put_off(self, host: HostQueue) -> FrontierUrl:
        """An answer of the host has no room."""
        self._ids += 1
        entry = FrontierUrl(0, self._ids, f"http://{host.name}/{self._ids}", 0)
        self.frontier.held.add(entry.id)
        page = Fetched(entry.url, 200, body=bytes(SIZE), content_type="text/html")
        self.answers.take(host, entry, page, now(), now())
        return entry

    def ended(self) -> dict[int, str | None]:
        return {page.settled.id: page.settled.reason for page in self.outbox.pages}


def now() -> float:
    return asyncio.get_running_loop().time()


def in_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def test_a_url_that_is_put_off_after_its_host_was_given_up_ends() -> None:
    async def work() -> None:
        scene = Scene()
        host = scene.host("a.example")
        scene.endings.give_up(host, "http_429", now())
        entry = scene.put_off(host)
        assert scene.ended() == {entry.id: HOST_UNAVAILABLE}
        assert len(scene.put_offs) == 0

    in_loop(work)


def test_the_urls_of_a_host_that_is_given_up_end_and_its_address_waits_no_more() -> None:
    async def work() -> None:
        scene = Scene()
        bad, good = scene.host("a.example"), scene.host("b.example")
        entries = [scene.put_off(bad) for _ in range(3)]
        scene.frontier.put_back(good.name, FrontierUrl(0, 99, "http://b.example/", 0), now())
        assert not scene.pump.gate.may_start(good, now())
        assert good.parked == reasons.READING
        scene.endings.give_up(bad, "http_429", now())
        assert scene.ended() == {entry.id: HOST_UNAVAILABLE for entry in entries}
        assert (len(scene.put_offs), good.parked) == (0, "")

    in_loop(work)


def test_urls_of_a_host_that_sleeps_hold_no_other_host_up() -> None:
    """Also while the reader has no room."""

    async def work() -> None:
        scene = Scene()
        bad, good = scene.host("a.example"), scene.host("b.example")
        for _ in range(3):
            scene.put_off(bad)
        scene.frontier.put_back(good.name, FrontierUrl(0, 99, "http://b.example/", 0), now())
        assert not scene.pump.gate.may_start(good, now())
        bad.clock.sleep_until(now() + 86400, reasons.RETRY_AFTER, 86400)
        scene.put_offs.let_in(now())
        assert (len(scene.put_offs), good.parked) == (3, "")

    in_loop(work)


def test_a_host_that_asks_for_a_day_is_given_up_if_only_such_urls_are_left() -> None:
    async def work() -> None:
        scene = Scene()
        scene.pump._running = True
        host = scene.host("a.example")
        entry = scene.put_off(host)
        host.clock.sleep_until(now() + 86400, reasons.RETRY_AFTER, 86400)
        scene.put_offs.let_in(now())
        scene.pump.give_up_long_waits()
        assert scene.ended() == {entry.id: HOST_UNAVAILABLE}

    in_loop(work)


def test_it_says_when_to_look_again() -> None:
    async def work() -> None:
        scene = Scene()
        sleeping, first, second = (scene.host(f"{name}.example", f"93.184.215.{name}") for name in (1, 2, 3))
        at = now()
        assert scene.put_offs.next_at() is None
        scene.put_off(sleeping)
        sleeping.clock.sleep_until(at + 300, reasons.CRAWL_DELAY, 300)
        scene.put_offs.let_in(at)
        assert scene.put_offs.next_at() == at + 300
        scene.reader.room = SIZE
        coming = scene.put_off(first)
        scene.put_offs.let_in(at + 1)
        assert list(first.queue) == [coming]
        assert scene.put_offs.next_at() == at + 300, "nobody waits for its room"
        scene.put_off(second)
        scene.put_offs.let_in(at + 2)
        assert not second.queue
        again = scene.put_offs.next_at()
        assert again == at + 31, "its room is for others then"
        scene.put_offs.let_in(again)
        assert len(second.queue) == 1

    in_loop(work)


def test_a_url_wakes_when_the_clock_of_its_host_is_set_back() -> None:
    """A `page` job does not wait after a robots.txt."""

    async def work() -> None:
        scene = Scene(robots_count=False)
        host = scene.host("a.example")
        entry = scene.put_off(host)
        host.clock.sleep_until(now() + 86400, reasons.RETRY_AFTER, 86400)
        scene.put_offs.let_in(now())
        scene.reader.room = SIZE
        scene.pump._introduced(host, entry.url, Robots(ALLOW_ALL, float("inf")), 0)
        scene.put_offs.let_in(now())
        assert list(host.queue) == [entry]

    in_loop(work)


def test_the_look_at_intervals_finds_room_that_nobody_told_of() -> None:
    async def work() -> None:
        scene = Scene()
        scene.pump._running = True
        host = scene.host("a.example")
        scene.put_off(host)
        await asyncio.sleep(0)
        scene.reader.room = SIZE
        host.parked = reasons.TURN  # it has no request slot
        scene.pump.look_after_waits()
        await asyncio.sleep(0)
        assert len(host.queue) == 1
        scene.pump.close()

    in_loop(work)

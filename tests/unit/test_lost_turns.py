"""A host whose turn it is may need it no more. Then another one gets it: nobody waits for ever."""

import asyncio
from typing import Any

from silkline.crawl import host_gate
from silkline.crawl.frontier import HostQueue
from silkline.crawl.host_gate import _Hops
from silkline.crawl.put_offs import PutOffs
from silkline.crawl.url_queue import FrontierUrl
from silkline.model.fetched import ADDRESS_BUSY, Fetched, Request
from tests.unit.test_address_places import OTHER, REAL, Scene, now


class FullReader:
    """A reader that has room, or none."""

    def __init__(self, room: int) -> None:
        self.room = room

    def place_of(self, _host: str) -> float:
        return 0.0


def started(scene: Scene, at: float) -> list[Any]:
    """Starts as many requests as may start, as the pump does. Returns their hosts and places."""
    found = []
    while (taken := scene.frontier.take(at)) is not None:
        host, entry = taken
        host.reserved = True
        if scene.gate.may_start(host, at):
            scene.frontier.started(host, at)
            found.append((host, scene.gate.started(host)))
        else:
            scene.frontier.put_back(host.name, entry, at)
    return found


def test_a_host_that_must_sleep_leaves_its_turn_to_the_next() -> None:
    async def work() -> None:
        scene = Scene(fetchers=8)  # one place
        shared, at = scene.at(REAL), now()
        first = scene.host("a.example", shared, quick=True)
        scene.frontier.put_back("a.example", FrontierUrl(0, 2, "http://a.example/2", 0), 0.0)
        ((_, place),) = started(scene, at)
        assert started(scene, at + 1) == []
        second = scene.host("b.example", shared, quick=True)
        assert started(scene, at + 1) == []
        assert first.parked
        assert second.parked
        first.clock.refused(at + 2, at, 86400.0, 300.0)  # as the pump: the answer first, then the place
        scene.gate.ended(first, place, at + 2)
        assert [host.name for host, _ in started(scene, at + 2)] == ["b.example"]

    asyncio.run(work())


def woken_host(scene: Scene, at: float) -> HostQueue:
    """The only place is free again: of two hosts that wait for it, it is the turn of this one."""
    shared = scene.at(REAL)
    first = scene.host("a.example", shared, quick=True)
    ((_, place),) = started(scene, at)
    waiting = [scene.host(f"{name}.example", shared, quick=True) for name in "bc"]
    assert started(scene, at + 1) == []
    scene.gate.ended(first, place, at + 2)
    return next(host for host in waiting if not host.parked)


def test_a_turn_that_was_lost_comes_again() -> None:
    async def work() -> None:
        scene, at = Scene(fetchers=8), now()
        woken = woken_host(scene, at)
        for _ in scene.frontier.clear_host(woken):  # it was given up, and says nothing
            pass
        assert started(scene, at + 3) == []
        scene.gate.wake_idle()
        assert len(started(scene, at + 4)) == 1

    asyncio.run(work())


def test_a_url_that_needs_no_request_passes_the_turn_on() -> None:
    async def work() -> None:
        scene, at = Scene(fetchers=8), now()
        woken = woken_host(scene, at)
        scene.frontier.take(at + 2)  # robots.txt forbids its only URL
        scene.gate.pass_turn(woken, at + 2)
        assert len(started(scene, at + 3)) == 1

    asyncio.run(work())


def test_all_places_are_used_after_the_address_was_behind() -> None:
    async def work() -> None:
        scene = Scene()
        shared, at = scene.at(REAL), now() + 5
        reader: Any = FullReader(0)
        scene.gate.put_offs = put_offs = PutOffs(scene.frontier, reader, scene.gate._wake_many)
        hosts = [scene.host(f"h{number}.example", shared, quick=True) for number in range(20)]
        for number in (500, 501):
            scene.frontier.held.add(number)
            put_offs.add(hosts[0], FrontierUrl(0, number, f"http://h0.example/{number}", 0), 1 << 20)
        assert started(scene, at) == []
        reader.room = 64 << 20
        put_offs.let_in(at)
        assert len(started(scene, at)) == shared.most

    asyncio.run(work())


def test_a_host_that_sleeps_does_not_keep_the_room_before_the_reader() -> None:
    async def work() -> None:
        scene = Scene()
        at, reader = now(), FullReader(64 << 20)
        room: Any = reader
        put_offs = PutOffs(scene.frontier, room, scene.gate._wake_many)
        sleeping, good = scene.frontier.host("sleeping.example"), scene.frontier.host("good.example")
        sleeping.address, good.address = scene.at(REAL), scene.at(OTHER)
        for host, count, size in ((sleeping, 3, 20 << 20), (good, 2, 8 << 20)):
            for number in range(count):
                url = FrontierUrl(0, 100 * count + number, f"http://{host.name}/{number}", 0)
                scene.frontier.held.add(url.id)
                put_offs.add(host, url, size)
        sleeping.clock.sleep_until(at + 300, "retry_after", 300)
        put_offs.let_in(at)
        assert (len(good.queue), good.address.behind, len(put_offs)) == (2, False, 3)
        sleeping.clock.next_at = at
        put_offs.wake(sleeping.name)
        put_offs.let_in(at + 1)
        assert len(sleeping.queue) == 2, "there is room for two"
        sleeping.clock.sleep_until(at + 900, "retry_after", 900)
        reader.room = 20 << 20  # two of them never came
        put_offs.let_in(at + 40)
        assert len(put_offs) == 1

    asyncio.run(work())


def test_a_robots_txt_at_a_busy_address_is_not_sent_before_its_moment(monkeypatch: Any) -> None:
    monkeypatch.setattr(host_gate, "_LONGEST_TURN", 0.2)

    async def work() -> Fetched:
        scene = Scene({"to-1.example": (OTHER,)})
        scene.client.answer.set()
        there = scene.at(OTHER)
        for _ in range(200):
            there.reserve(now())
        host = scene.host("from-1.example", scene.at(REAL), quick=False)
        place = scene.gate._place(host, scene.at(REAL))
        hops: Any = _Hops(scene.gate, scene.client)  # type: ignore[arg-type]
        fetched: Fetched = await hops.fetch(Request("http://to-1.example/robots.txt"), place)
        assert (there.in_flight, scene.client.most) == (0, {})
        return fetched

    assert asyncio.run(work()).reason == ADDRESS_BUSY

"""Who gets the places of an address that many names share, also if somebody else made these names."""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from silkline.crawl.address_limit import Address
from silkline.crawl.frontier import HostQueue
from silkline.crawl.host_gate import _Hops
from silkline.crawl.messages import Granted, HostTime
from silkline.crawl.plan import PACES
from silkline.crawl.waiting_hosts import TurnQueue, WaitingHosts
from silkline.fetch.dns import Resolution
from silkline.model import host_wait as reasons
from silkline.model.fetched import ADDRESS_BUSY, CONNECT_TIMEOUT, TIMEOUT, Request
from tests.support.address_scene import NORMAL, OTHER, REAL, Scene, in_loop, now
from tests.support.virtual_loop import run_virtually


def test_the_limit_is_that_of_the_first_address_that_the_guard_allows() -> None:
    """80 names, each with another private address before the same public one: 80 requests at once reached it."""

    async def work() -> None:
        names: dict[str, Resolution] = {f"h{number}.example": (f"10.9.0.{number}", REAL) for number in range(80)}
        scene = Scene(names)
        assert sum(map(scene.introduce, names)) == NORMAL.per_address
        assert scene.at(REAL).in_flight == NORMAL.per_address
        scene.gate.close()

    in_loop(work)


def test_a_name_that_has_another_address_now_needs_a_place_there() -> None:
    """Its host was introduced with an address of its own, and got that of another site after a few minutes."""

    async def work() -> None:
        scene = Scene()
        own, victim = scene.at(OTHER), scene.at(REAL)
        busy = [scene.gate._addresses.place(victim, quick=True, is_new=False) for _ in range(NORMAL.per_address)]
        host = scene.host("moving.example", own, quick=True)
        place = scene.start(host)
        assert place.enter(REAL, 80) == ADDRESS_BUSY
        scene.gate.follow(host, place, reached=False)
        scene.gate.ended(host, place, now())
        assert (victim.in_flight, own.in_flight) == (NORMAL.per_address, 0)
        assert host.address is victim, "it waits there from now on"
        assert not scene.gate.may_start(host, now())
        assert host.parked == reasons.ADDRESS
        busy[0].leave(now())
        assert not host.parked

    in_loop(work)


def test_a_request_that_goes_on_to_another_address_is_counted_there() -> None:
    async def work() -> None:
        scene = Scene()
        dead, second = scene.at(OTHER), scene.at(REAL)
        host = scene.host("half.example", dead, quick=True)
        place = scene.start(host)
        assert place.order((REAL, OTHER)) == (OTHER, REAL), "where its place is comes first"
        assert [place.enter(OTHER, 80), place.enter(REAL, 80)] == [None, None]
        assert (dead.in_flight, second.in_flight) == (0, 1)
        another = scene.start(scene.host("also.example", dead, quick=True))
        assert another.enter(REAL, 80) == ADDRESS_BUSY, "not sooner after the last one than requests may follow there"
        scene.gate.follow(host, place, reached=True)
        scene.gate.ended(host, place, now())
        assert (second.in_flight, host.address is second) == (0, True)
        host.held = 1
        third = scene.start(host)
        third.enter("93.184.215.77", 80)
        scene.gate.follow(host, third, reached=True)
        scene.gate.ended(host, third, now())
        assert host.address is second, "answers that wait to be read are counted there"

    in_loop(work)


def test_a_robots_txt_that_is_elsewhere_waits_for_a_place_there() -> None:
    """Hosts with addresses of their own may all redirect their robots.txt to names of one address."""

    async def work() -> None:
        names: dict[str, Resolution] = {f"from-{number}.example": (f"93.184.214.{number}",) for number in range(30)}
        names |= {f"to-{number}.example": (REAL,) for number in range(30)}
        scene = Scene(names)
        scene.client.answer.set()
        for name in names:
            scene.frontier.host(name).clock.pace = PACES["max"]
        shared = scene.at(REAL)
        shared._spacing = 0.0
        assert sum(map(scene.introduce, [name for name in names if name.startswith("from-")])) == 30
        await asyncio.gather(*scene.gate._tasks)
        await asyncio.sleep(0)
        assert scene.introduced
        assert [each[1:] for each in scene.introduced] == [("http_404", 0)] * 30
        assert scene.client.most[REAL] == NORMAL.per_address
        assert shared.in_flight == 0

    in_loop(work)


def test_the_limit_holds_for_a_robots_txt_that_is_loaded_before_anything_is_queued() -> None:
    """A `map` of 40 sites at one address sent 40 requests at once."""

    async def work() -> None:
        names: dict[str, Resolution] = {f"h{number}.example": (REAL,) for number in range(40)}
        scene = Scene(names)
        for name in names:
            scene.frontier.host(name).clock.pace = PACES["max"]
        shared = scene.at(REAL)
        shared._spacing = 0.0
        loads = [asyncio.ensure_future(scene.gate.load_rules(f"http://{name}/")) for name in names]
        for _ in range(100):  # all of them go as far as they can
            await asyncio.sleep(0)
        assert scene.client.at_once[REAL] == NORMAL.per_address
        scene.client.answer.set()
        assert [rules.reason for rules in await asyncio.gather(*loads)] == ["http_404"] * 40
        assert scene.client.most[REAL] == NORMAL.per_address
        assert shared.in_flight == 0

    in_loop(work)


@pytest.mark.parametrize(("delay", "asleep", "waits"), [(0.5, 59.0, True), (0.5, 86400.0, False), (120.0, 125.0, True)])
def test_a_robots_txt_does_not_wait_for_a_host_that_asks_for_a_day(delay: float, asleep: float, waits: bool) -> None:
    """It would hold a slot and a place at the address. The delay that a job chose is no such wait."""

    async def work() -> None:
        scene = Scene({"a.example": (REAL,)})
        scene.client.answer.set()
        host = scene.host("a.example", scene.at(REAL), quick=True)
        host.clock.pace = msgspec.structs.replace(NORMAL, delay=delay)
        began = now()
        host.clock.sleep_until(began + asleep, reasons.RETRY_AFTER, asleep)
        client: Any = scene.client
        place = scene.gate._place(host, scene.at(REAL))
        fetched = await _Hops(scene.gate, client).fetch(Request("http://a.example/robots.txt"), place)
        assert (fetched.reason == "http_404", now() >= began + asleep) == (waits, waits)
        if not waits:
            assert (fetched.reason, fetched.headers["retry-after"]) == (TIMEOUT, "86400")

    run_virtually(work)


def test_a_request_gives_up_to_wait_for_a_place_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setattr("silkline.crawl.host_gate._LONGEST_TURN", 0.01)
        scene = Scene({"to.example": (REAL,)})
        victim, own = scene.at(REAL), scene.at(OTHER)
        for _ in range(NORMAL.per_address):
            scene.gate._addresses.place(victim, quick=False, is_new=False)
        place = scene.gate._addresses.place(own, quick=False, is_new=True)
        client: Any = scene.client
        fetched = await _Hops(scene.gate, client).fetch(Request("http://to.example/robots.txt"), place)
        assert fetched.reason == ADDRESS_BUSY
        assert (victim.in_flight, own.in_flight) == (NORMAL.per_address, 0), "and held no place meanwhile"

    in_loop(work)


def test_one_address_is_one_value_as_long_as_a_host_has_it() -> None:
    """Thousands of other addresses made us forget it, and the next host of the address began to count at zero."""

    async def work() -> None:
        scene = Scene()
        first = scene.at(REAL)
        for number in range(60_000):
            scene.at(f"2001:db8:0:{number:x}::/64")
        scene.gate.forget([])
        assert scene.at(REAL) is first
        assert len(scene.gate._addresses._known) == 1, "those that nobody has are forgotten"

    in_loop(work)


def test_the_address_of_a_host_without_a_name_is_booked_too() -> None:
    async def work() -> None:
        scene = Scene({"a.example": (REAL,)})
        scene.introduce(REAL)
        scene.introduce("a.example")
        hosts = scene.frontier.host(REAL), scene.frontier.host("a.example")
        assert hosts[0].address is hosts[1].address
        assert hosts[1].address is not None
        assert hosts[1].address.key == REAL
        scene.gate.close()

    in_loop(work)


# Some places are for quick hosts.


def test_a_quick_host_has_a_place_whatever_others_of_its_address_do() -> None:
    """A page linked to a hundred ports of another site that do not answer, and that site got no request any more."""

    async def work() -> None:
        scene = Scene()
        shared = scene.at(REAL)
        good = scene.host("good.example", shared, quick=True)
        scene.gate.ended(good, scene.start(good), now())
        dead = [scene.host(f"{REAL}:{81 + number}", shared, quick=False) for number in range(20)]
        assert [scene.gate.may_start(each, 1.0) and bool(scene.gate.started(each)) for each in dead].count(True) == 6
        assert {each.parked for each in dead[6:]} == {reasons.ADDRESS}
        first = scene.start(good)
        scene.start(good)
        assert shared.in_flight == NORMAL.per_address
        good.reserved = True
        assert not scene.gate.may_start(good, now()), "the limit holds for all together"
        first.leave(now())
        assert not good.parked, "it comes before those who wait longer"

    in_loop(work)


def test_new_hosts_use_all_places_as_long_as_none_is_quick() -> None:
    address = Address(NORMAL, 1)
    for _ in range(NORMAL.per_address):
        assert not address.full_for(quick=False)
        address.enter(quick=False)
    assert address.full


def test_new_hosts_have_places_however_many_quick_hosts_wait() -> None:
    address, waiting = Address(NORMAL, 1), WaitingHosts()
    new, quick = (HostQueue(name, NORMAL) for name in ("new.example", "quick.example"))
    for _ in range(NORMAL.per_address - 1):
        address.enter(quick=True)
    waiting.put("quick.example", quick, quick=True)
    waiting.put("new.example", new, quick=False)
    assert waiting.take(address, 0.0) is new
    waiting.put("new.example", new, quick=False)
    address.leave(1.0, 0.0, quick=True)
    address.leave(1.0, 0.0, quick=True)
    for _ in range(address.least_unproven):
        address.enter(quick=False)
    assert waiting.take(address, 0.0) is quick
    address.enter(quick=False)
    assert address.full
    assert waiting.take(address, 0.0) is None


def test_a_host_that_waits_for_a_place_of_new_hosts_lets_a_quick_one_go_first() -> None:
    """A quick host that waited, and failed meanwhile, was woken for a place that it may not have."""

    async def work() -> None:
        scene = Scene()
        shared = scene.at(REAL)
        places = [scene.gate._addresses.place(shared, quick=number > 5, is_new=False) for number in range(8)]
        failing, quick = (scene.host(f"{name}.example", shared, quick=True) for name in ("failing", "quick"))
        assert not scene.gate.may_start(failing, now())
        assert not scene.gate.may_start(quick, now())
        failing.clock.failures = 1
        places[7].leave(now())
        assert (failing.parked, quick.parked) == ("", reasons.ADDRESS)
        assert not scene.gate.may_start(failing, now())
        assert (failing.parked, quick.parked) == (reasons.ADDRESS, "")

    in_loop(work)


def test_an_only_place_is_shared_by_time() -> None:
    """With many fetchers, each has one place of an address. None can be kept."""

    async def work() -> None:
        scene = Scene(fetchers=NORMAL.per_address)
        shared = scene.at(REAL)
        good, dead = scene.host("good.example", shared, quick=True), scene.host(f"{REAL}:81", shared, quick=False)
        place = scene.start(dead)
        place._since = now() - 10.0
        scene.gate.follow(dead, place, reached=False)
        scene.gate.ended(dead, place, now())
        assert scene.gate.may_start(good, now())
        dead.reserved = True
        assert not scene.gate.may_start(dead, now())
        assert (dead.parked, dead.clock.next_at > now() + 9.0) == ("", True), "it comes again by itself"
        assert scene.gate.may_start(dead, dead.clock.next_at)

    in_loop(work)


def test_many_new_hosts_book_little_time_of_their_address() -> None:
    """The time of an address is booked for all its hosts one after the other. A quick one waited for all others."""

    async def work() -> None:
        scene = Scene(booked=False)
        names = [f"{REAL}:{8000 + number}" for number in range(200)]
        assert sum(map(scene.introduce, names)) == 0
        await asyncio.sleep(0.001)
        most = 4 * NORMAL.per_address
        assert scene.asked == names[:most]
        assert {scene.frontier.host(name).parked for name in names[most:]} == {reasons.ADDRESS}
        starts = time.monotonic() - 1.0
        booked = [HostTime(name, starts, starts + 60.0, "", 0.0) for name in scene.asked]
        scene.gate.bookings.granted(Granted(booked))
        await asyncio.sleep(0.01)
        woken = [name for name in names[most:] if not scene.frontier.host(name).parked]
        assert len(woken) == most
        assert sum(map(scene.introduce, woken)) == 0
        assert scene.at(REAL).crowded
        assert scene.introduce(names[0]) == 1, "what is booked is used"
        scene.gate.close()

    in_loop(work)


def test_a_host_that_has_another_address_now_uses_no_turn_of_the_old_one() -> None:
    async def work() -> None:
        scene = Scene()
        shared = scene.at(REAL)
        places = [scene.gate._addresses.place(shared, quick=True, is_new=False) for _ in range(shared.most)]
        moved, other = (scene.host(f"{name}.example", shared, quick=True) for name in ("moved", "other"))
        assert [scene.gate.may_start(host, now()) for host in (moved, other)] == [False, False]
        moved.address = scene.at(OTHER)
        places[0].leave(now())
        assert (moved.parked, other.parked) == ("", "")

    in_loop(work)


# Turns of those who wait.


def test_ports_and_domains_take_turns() -> None:
    """A site that has not answered yet waited for hundreds of names that somebody else made for its address."""
    queue = TurnQueue()
    names = [f"h{number}.z{number}-evil.com:81" for number in range(50)]
    names += [f"{REAL}:{8000 + number}" for number in range(50)]
    names += [f"h{number}.evil.com" for number in range(50)]
    hosts = {name: HostQueue(name, NORMAL) for name in (*names, "www.good.com", "good.com:8443")}
    for name, host in hosts.items():
        queue.put(name, host)
    order = [waiter.name for waiter in (queue.take() for _ in hosts) if isinstance(waiter, HostQueue)]
    assert not queue
    assert sorted(order) == sorted(hosts)
    assert order.index("www.good.com") < 6, "few domains use the usual ports"
    literals = [order.index(name) for name in order if name.startswith(REAL)]
    assert literals[1] > order.index("good.com:8443"), "all ports of one host are one domain"


# Ports that do not answer.


def test_new_hosts_do_not_try_a_port_that_does_not_answer() -> None:
    async def work() -> None:
        names: dict[str, Resolution] = {f"h{number}.example": (REAL,) for number in range(20)}
        scene = Scene(names)
        shared = scene.at(REAL)
        for _ in range(3):
            place = scene.gate._addresses.place(shared, quick=False, is_new=True)
            assert place.enter(REAL, 81) is None
            place.timed_out()
            place.leave(now())
        assert sum(scene.introduce(f"h{number}.example:81") for number in range(10)) == 0
        assert scene.frontier.take(now()) is None, "the pump would take it for ever"
        await asyncio.sleep(0)
        assert scene.introduced == [(f"h{number}.example:81", CONNECT_TIMEOUT, 1) for number in range(10)]
        assert shared.in_flight == 0
        assert scene.introduce("h11.example") == 1, "other ports are tried"
        new = scene.gate._addresses.place(scene.at(OTHER), quick=False, is_new=True)
        assert new.enter(REAL, 81) == CONNECT_TIMEOUT, "also if robots.txt does not matter, or at a second address"
        known = scene.gate._addresses.place(shared, quick=False, is_new=False)
        assert known.enter(REAL, 81) is None, "a host that has answered before is tried as before"
        known.reached()
        assert scene.introduce("h12.example:81") == 1
        scene.gate.close()

    in_loop(work)


def test_hosts_that_wait_for_a_port_that_does_not_answer_end_together() -> None:
    async def work() -> None:
        names: dict[str, Resolution] = {f"h{number}.example": (REAL,) for number in range(20)}
        scene = Scene(names)
        hosts = [scene.host(f"{name}:81", scene.at(REAL), quick=False) for name in names]
        started = [scene.introduce(host.name) for host in hosts]
        assert sum(started) == NORMAL.per_address
        await asyncio.sleep(0)
        for _ in range(3):
            scene.at(REAL).timed_out(81, now())
        scene.client.answer.set()
        await asyncio.gather(*scene.gate._tasks)
        await asyncio.sleep(0)
        for _ in hosts:  # as the pump does: one that was woken is introduced again, and wakes the next one
            for host in hosts:
                if not host.parked and host.name not in [each[0] for each in scene.introduced]:
                    scene.introduce(host.name)
            await asyncio.sleep(0)
        assert len(scene.introduced) == len(hosts)
        assert [host.parked for host in hosts] == [""] * len(hosts)

    in_loop(work)


def test_a_port_is_tried_again_after_a_while() -> None:
    address = Address(NORMAL, 1)
    for _ in range(2):
        address.timed_out(81, 10.0)
    assert not address.is_silent(81, 11.0)
    address.timed_out(81, 12.0)
    assert address.is_silent(81, 300.0)
    assert not address.is_silent(80, 300.0)
    assert not address.is_silent(81, 320.0)
    address.timed_out(81, 330.0)
    assert address.is_silent(81, 331.0), "one more is enough then"
    address.reached(81)
    assert not address.is_silent(81, 331.0)

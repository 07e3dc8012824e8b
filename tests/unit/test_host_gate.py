"""The limits that hosts with one address share."""

import asyncio
from typing import Any

import pytest

from silkline.crawl.address_limit import MOST_UNREAD, Address, address_key
from silkline.crawl.frontier import Frontier
from silkline.crawl.host_bookings import HostBookings
from silkline.crawl.host_gate import HostGate
from silkline.crawl.plan import PACES, Plan
from silkline.crawl.politeness import Clock
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.robots import ALLOW_ALL, Robots
from silkline.kinds.site import plan_of
from silkline.model import host_wait as reasons
from silkline.model.spec import SiteSpec

LARGE = MOST_UNREAD + 1


async def scene() -> tuple[HostGate, Frontier]:
    gate, frontier, plan = empty_gate("max", 1)
    for name, address in (("a.example", Address(plan.pace, 1)), ("b.example", Address(plan.pace, 1))):
        frontier.put_back(name, FrontierUrl(0, 1, f"https://{name}/", 0), 0.0)
        frontier.host(name).address = address
    frontier.host("c.example").address = frontier.host("a.example").address
    return gate, frontier


def empty_gate(speed: Any, slots: int) -> tuple[HostGate, Frontier, Plan]:
    spec = SiteSpec(url="https://a.example/", speed=speed)
    plan: Plan = plan_of(spec, fetchers=1, concurrency=slots, rendering=None)
    frontier = Frontier(plan.pace, window=10, per_host=10)
    nothing: Any = None
    bookings = HostBookings(plan, frontier, nothing, nothing)
    return HostGate(plan, nothing, frontier, nothing, lambda *_: None, nothing, bookings), frontier, plan


class EndlessRobots:
    """Robots rules that arrive when `arrived` is set."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.loading = 0

    def of(self, _origin: str) -> None:
        return None

    async def load(self, _origin: str, _place: object) -> tuple[Robots, int]:
        self.loading += 1
        await self.arrived.wait()
        return Robots(ALLOW_ALL, float("inf")), 0


def with_endless_robots(gate: HostGate) -> EndlessRobots:
    endless: Any = EndlessRobots()
    gate._robots = endless

    async def turn(_host: object) -> bool:
        return False

    gate.bookings.turn = turn  # type: ignore[method-assign]
    gate.bookings.may_send = lambda _host: True  # type: ignore[method-assign]
    return endless  # type: ignore[no-any-return]


def introduce(gate: HostGate, frontier: Frontier, name: str) -> int:
    """The next URL of a host is taken, put back, and its robots.txt is asked for, as the pump does it."""
    frontier.put_back(name, FrontierUrl(0, 1, f"http://{name}/", 0), 0.0)
    return gate.introduce(frontier.host(name), f"http://{name}/")


def test_the_limit_of_an_address_holds_for_robots_txt() -> None:
    """One address with hundreds of hosts, whose robots.txt never ends, took every slot of the crawl."""

    async def work() -> None:
        gate, frontier, plan = empty_gate("normal", 100)
        robots = with_endless_robots(gate)
        most = plan.pace.per_address
        names = [f"192.0.2.1:{8000 + number}" for number in range(most + 5)]
        assert sum(introduce(gate, frontier, name) for name in names) == most
        await asyncio.sleep(0)
        assert (robots.loading, gate.under_way) == (most, most)
        waiting = frontier.host(names[most])
        assert waiting.parked == reasons.ADDRESS
        assert introduce(gate, frontier, "192.0.2.2") == 1, "another address does not wait"
        robots.arrived.set()
        await asyncio.gather(*gate._tasks)
        assert [host.parked for host in frontier.hosts.values()] == [""] * len(frontier.hosts)
        address = waiting.address
        assert address is not None
        assert address.in_flight == 0

    asyncio.run(work())


def test_a_host_whose_time_is_not_booked_yet_holds_nothing() -> None:
    """If it held a slot of new hosts, hosts of other jobs would keep this one from its own. If it held none, and went
    on later by itself, more hosts than there are slots could do so."""

    async def work() -> None:
        gate, frontier, _ = empty_gate("normal", 4)
        robots = with_endless_robots(gate)
        gate.bookings.may_send = lambda _host: False  # type: ignore[method-assign]
        names = [f"192.0.2.{number}" for number in range(10)]
        assert sum(introduce(gate, frontier, name) for name in names) == 0
        await asyncio.sleep(0)
        assert (gate.under_way, robots.loading, gate.unproven.free) == (0, 0, 3)
        gate.bookings.may_send = lambda _host: True  # type: ignore[method-assign]
        assert sum(gate.introduce(frontier.host(name), f"http://{name}/") for name in names) == 3

    asyncio.run(work())


def test_new_hosts_leave_slots_for_hosts_that_answer_soon() -> None:
    """600 hosts with an endless robots.txt, or with endless pages, each at its own address, stopped a crawl."""

    async def work() -> None:
        gate, frontier, _ = empty_gate("max", 8)
        robots = with_endless_robots(gate)
        good = frontier.host("good.example")
        good.address = Address(gate._plan.pace, 1)
        slow = frontier.host("slow.example")
        slow.address = Address(gate._plan.pace, 1)
        assert gate.may_start(slow, 0.0)
        place = gate.started(slow)
        good.clock.answered(1.0, 0.2)
        assert [introduce(gate, frontier, f"192.0.2.{number}") for number in range(8)] == [1] * 5 + [0] * 3
        await asyncio.sleep(0)
        assert gate.under_way == 5
        assert not gate.may_start(slow, 1.0)
        assert slow.parked == reasons.TURN
        assert gate.may_start(good, 1.0)
        gate.started(good)
        assert gate.may_start(good, 1.0), "the pump counts the slots of all requests together"
        gate.unproven.admit(1.0)
        assert frontier.host("192.0.2.5").parked == reasons.TURN
        gate.ended(slow, place, 2.0)
        gate.unproven.admit(2.0)
        assert not frontier.host("192.0.2.5").parked
        assert frontier.host("192.0.2.6").parked == reasons.TURN
        robots.arrived.set()
        await asyncio.gather(*gate._tasks)
        gate.unproven.admit(3.0)
        assert not slow.parked

    asyncio.run(work())


def test_a_new_host_that_waits_for_a_slot_lets_a_quick_one_of_its_address_go_first() -> None:
    async def work() -> None:
        gate, frontier, plan = empty_gate("normal", 4)
        with_endless_robots(gate)
        shared = Address(plan.pace, 1)
        new, quick = frontier.host("new.example"), frontier.host("quick.example")
        for host in (new, quick):
            frontier.put_back(host.name, FrontierUrl(0, 1, f"https://{host.name}/", 0), 0.0)
            host.address = shared
        quick.clock.answered(1.0, 0.2)
        places = [gate._addresses.place(shared, quick=True, is_new=False) for _ in range(shared.most)]
        assert not gate.may_start(new, 1.0)
        assert not gate.may_start(quick, 1.0)
        assert sum(introduce(gate, frontier, f"192.0.2.{number}") for number in range(4)) == 3
        places[0].leave(2.0)
        assert (new.parked, quick.parked) == ("", reasons.ADDRESS)
        assert not gate.may_start(new, 2.0)
        assert (new.parked, quick.parked) == (reasons.TURN, "")

    asyncio.run(work())


def test_a_host_that_fails_or_becomes_slow_is_no_longer_quick() -> None:
    clock = Clock(PACES["normal"])
    assert not clock.quick, "a new host may be slow"
    clock.answered(1.0, 0.3)
    assert clock.quick
    clock.failed(2.0, 1.5)
    assert not clock.quick
    clock.answered(3.0, 0.3)
    assert clock.quick
    for moment in range(4, 14):
        clock.answered(float(moment), 20.0)
    assert not clock.quick


def test_a_host_with_slow_answers_between_quick_ones_is_not_quick() -> None:
    """It would hold the slots that are kept for quick hosts for most of the time."""
    clock = Clock(PACES["normal"])
    for moment in range(100):
        clock.answered(float(moment), 60.0 if moment % 9 >= 5 else 0.2)
        assert clock.usual < 1 or moment % 9 >= 5
    assert not clock.quick
    once = Clock(PACES["normal"])
    for moment in range(20):
        once.answered(float(moment), 4.0 if moment == 5 else 0.2)
        assert once.quick == (moment not in range(5, 15)), "one slow answer is soon forgotten"


def test_a_host_that_was_slow_for_a_long_time_is_quick_again_after_1200_quick_answers() -> None:
    clock = Clock(PACES["normal"])
    for moment in range(500):
        clock.answered(float(moment), 13.0)
    for moment in range(500, 1_700):
        assert not clock.quick
        clock.answered(float(moment), 0.2)
    assert clock.quick


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("64:ff9b::c000:207", "192.0.2.7"),
        ("no:address", "no:address"),
        ("", ""),
    ],
)
def test_a_network_of_ipv6_is_one_address(address: str, key: str) -> None:
    """A customer with one IPv6 address has 2**64 of them."""
    assert address_key(address) == key


def test_hosts_in_one_network_of_ipv6_share_the_limit() -> None:
    async def work() -> None:
        gate, frontier, plan = empty_gate("polite", 100)
        with_endless_robots(gate)
        names = [f"[2001:db8::{number:x}]" for number in range(1, 10)]
        assert sum(introduce(gate, frontier, name) for name in names) == plan.pace.per_address

    asyncio.run(work())


def test_only_the_address_whose_large_pages_wait_to_be_read_waits() -> None:
    async def work() -> None:
        gate, frontier = await scene()
        first, other, neighbour = (frontier.host(f"{name}.example") for name in "abc")
        gate.waits_to_be_read(first, LARGE)
        assert not gate.may_start(first, 1.0)
        assert first.parked == reasons.READING
        assert not gate.may_start(neighbour, 1.0)
        assert gate.may_start(other, 1.0)
        gate.was_read(first, LARGE)
        assert not first.parked
        assert gate.may_start(first, 2.0)

    asyncio.run(work())


def test_urls_without_room_before_the_reader_are_fetched_again_in_the_order_of_their_turns() -> None:
    """An address with several of them waits alone. With one, its hosts go on."""

    async def work() -> None:
        gate, frontier, plan = empty_gate("max", 1)
        reader: Any = FullReader({"a.example": 3.0, "b.example": 2.0})
        gate.put_offs._queue = reader
        frontier.held |= {1, 2, 3, 4}
        slow, other = frontier.host("a.example"), frontier.host("b.example")
        slow.address, other.address = Address(plan.pace, 1), Address(plan.pace, 1)
        first, second, third, fourth = (FrontierUrl(0, id, f"http://{id}.example/", 0) for id in (1, 2, 3, 4))
        gate.put_offs.add(slow, first, LARGE)
        assert gate.may_start(slow, 1.0)
        gate.put_offs.add(slow, second, LARGE)
        gate.put_offs.add(other, third, LARGE)
        gate.put_offs.add(slow, fourth, LARGE)
        frontier.put_back(slow.name, FrontierUrl(0, 5, "http://a.example/5", 0), 1.0)
        assert not gate.may_start(slow, 2.0)
        assert slow.parked == reasons.READING
        assert gate.may_start(other, 2.0)

        gate.put_offs.let_in(3.0)
        assert len(gate.put_offs) == 4, "there is no room yet"
        reader.room = 2 * LARGE
        gate.put_offs.let_in(4.0)
        assert (list(other.queue), [entry.id for entry in slow.queue], slow.parked) == ([third], [1, 5], "")
        assert gate.may_start(slow, 5.0), "two of its URLs wait, but one may be fetched"
        gate.put_offs.let_in(5.0)
        assert len(gate.put_offs) == 2, "the room is for those that are on their way"

        gate.put_offs.arrived(first.id)
        reader.room = LARGE
        assert not gate.may_start(slow, 6.0)
        gate.put_offs.let_in(6.0)
        assert len(gate.put_offs) == 2
        frontier.forget(third.id)  # it has ended without an answer
        gate.put_offs.let_in(7.0)
        assert (len(gate.put_offs), [entry.id for entry in slow.queue], slow.parked) == (1, [1, 5, 2], "")

    asyncio.run(work())


class FullReader:
    """Knows only its room, and when it would read an input of each host."""

    def __init__(self, places: dict[str, float]) -> None:
        self._places = places
        self.room = 0

    def place_of(self, host: str) -> float:
        return self._places[host]


def test_an_address_with_many_pages_before_the_browser_waits_alone() -> None:
    """Otherwise one host with slow pages would fill the queue for browsers, and stop all others of its fetcher."""

    async def work() -> None:
        gate, frontier = await scene()
        slow, other, neighbour = (frontier.host(f"{name}.example") for name in "abc")
        for _ in range(15):
            gate.waits_for_browser(slow, 100)
        assert gate.may_start(slow, 1.0)
        gate.waits_for_browser(neighbour, 100)
        assert not gate.may_start(slow, 2.0)
        assert slow.parked == reasons.RENDERING
        assert gate.may_start(other, 2.0)
        gate.was_shown(neighbour, 100)
        assert not slow.parked
        assert gate.may_start(slow, 3.0)
        gate.waits_for_browser(slow, 20_000_000)
        assert not gate.may_start(slow, 4.0), "a large page counts more"
        gate.ended(slow, gate.started(slow), 4.0)
        assert slow.parked, "the end of a request changes nothing"

    asyncio.run(work())


def test_small_pages_that_wait_to_be_read_stop_nobody() -> None:
    async def work() -> None:
        gate, frontier = await scene()
        first = frontier.host("a.example")
        gate.waits_to_be_read(first, MOST_UNREAD)
        assert gate.may_start(first, 1.0)

    asyncio.run(work())


def test_requests_for_robots_txt_that_wait_for_one_host_are_sent_one_after_the_other() -> None:
    """Many hosts may redirect their robots.txt to one host."""

    async def work() -> None:
        gate, frontier = await scene()
        clock = frontier.host("a.example").clock
        clock.crawl_delay = 0.02
        opened = asyncio.Event()

        async def turn(_host: object) -> bool:
            waits = not opened.is_set()
            await opened.wait()
            return waits

        async def hop() -> float:
            return (await gate.before_hop("https://a.example/robots.txt"))[0].clock.next_at

        gate.bookings.turn = turn  # type: ignore[method-assign]
        hops = [asyncio.create_task(hop()) for _ in range(3)]
        await asyncio.sleep(0)
        opened.set()
        first, second, third = sorted(await asyncio.gather(*hops))
        assert second >= first + 0.02
        assert third >= second + 0.02

    asyncio.run(work())

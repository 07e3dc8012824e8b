"""The limits that hosts with one address share."""

import asyncio
from typing import Any

from silkline.crawl.frontier import Frontier, FrontierUrl
from silkline.crawl.host_bookings import HostBookings
from silkline.crawl.host_gate import HostGate
from silkline.crawl.plan import Plan
from silkline.crawl.politeness import MOST_UNREAD, Address
from silkline.kinds.site import plan_of
from silkline.model import wait as reasons
from silkline.model.spec import SiteSpec

LARGE = MOST_UNREAD + 1


async def scene() -> tuple[HostGate, Frontier]:
    plan: Plan = plan_of(SiteSpec(url="https://a.example/", speed="max"), fetchers=1, concurrency=1, rendering=None)
    frontier = Frontier(plan.pace, window=10, per_host=10)
    nothing: Any = None
    bookings = HostBookings(plan, frontier, nothing, nothing)
    gate = HostGate(plan, nothing, frontier, nothing, nothing, nothing, bookings)
    for name, address in (("a.example", Address(plan.pace, 1)), ("b.example", Address(plan.pace, 1))):
        frontier.put_back(name, FrontierUrl(0, 1, f"https://{name}/", 0), 0.0)
        frontier.host(name).address = address
    frontier.host("c.example").address = frontier.host("a.example").address
    return gate, frontier


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
        gate.started(slow)
        gate.ended(slow, 4.0)
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
            return (await gate.before_hop("https://a.example/robots.txt")).next_at

        gate.bookings.turn = turn  # type: ignore[method-assign]
        hops = [asyncio.create_task(hop()) for _ in range(3)]
        await asyncio.sleep(0)
        opened.set()
        first, second, third = sorted(await asyncio.gather(*hops))
        assert second >= first + 0.02
        assert third >= second + 0.02

    asyncio.run(work())

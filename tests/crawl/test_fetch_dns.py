"""Name servers that do not answer cost their own names time, and no other name."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

from silkline.crawl.frontier import Frontier
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.host_bookings import HostBookings
from silkline.crawl.host_gate import HostGate
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.dns import Resolution, SystemResolver
from silkline.fetch.dns_queue import NameQueue, SilentZones, last_two_labels
from silkline.model.fetched import DNS_FAILED, DNS_TIMEOUT
from silkline.model.spec import SiteSpec

ADDRESS = ("192.0.2.1",)


class Silence:
    """Names that begin with `slow` get no answer before it is over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked: list[str] = []

    def look_up(self, host: str) -> Resolution:
        self.asked.append(host)
        if host.startswith("slow"):
            self.over.wait(60)
            return DNS_FAILED
        return ADDRESS


async def start(resolver: SystemResolver, *hosts: str) -> list[asyncio.Task[Resolution]]:
    tasks = [asyncio.create_task(resolver.resolve(host)) for host in hosts]
    await asyncio.sleep(0)
    return tasks


def test_time_in_our_own_queue_is_not_a_failure_of_the_host() -> None:
    silence = Silence()

    async def main() -> None:
        resolver = SystemResolver(threads=1, timeout=0.05, slow_after=0.01, look_up=silence.look_up)
        slow = await start(resolver, *(f"slow.{n}.test" for n in range(2)))
        good, *more = await start(resolver, "good.test", "slow.2.test")
        assert await asyncio.gather(*slow) == [DNS_TIMEOUT] * 2
        assert not good.done()
        silence.over.set()
        assert await good == ADDRESS
        assert await asyncio.gather(*more) == [DNS_FAILED]
        resolver.close()

    asyncio.run(main())


def test_many_names_of_one_domain_leave_threads_to_others() -> None:
    silence = Silence()

    async def main() -> None:
        resolver = SystemResolver(threads=4, timeout=60, slow_after=60, look_up=silence.look_up)
        slow = await start(resolver, *(f"slow{n}.dead.test" for n in range(500)))
        for n in range(50):
            assert await asyncio.wait_for(resolver.resolve(f"g{n}.good.test"), 30) == ADDRESS
        assert not any(task.done() for task in slow)
        resolver.close()
        silence.over.set()
        assert await asyncio.gather(*slow) == [DNS_FAILED] * 500

    asyncio.run(main())


def test_slow_look_ups_of_many_domains_give_their_places_to_new_names() -> None:
    silence = Silence()

    async def main() -> None:
        resolver = SystemResolver(threads=2, timeout=60, slow_after=0.01, look_up=silence.look_up)
        slow = await start(resolver, "slow.one.test", "slow.two.test")
        assert await asyncio.wait_for(resolver.resolve("good.test"), 30) == ADDRESS
        again = await start(resolver, "slow2.one.test", "slow2.two.test", "slow3.one.test")
        assert await asyncio.wait_for(resolver.resolve("fine.test"), 30) == ADDRESS
        resolver.close()
        silence.over.set()
        await asyncio.gather(*slow, *again)

    asyncio.run(main())


def test_a_zone_that_does_not_answer_is_left_alone_for_a_while() -> None:
    silence, now = Silence(), 0.0

    async def main() -> None:
        nonlocal now
        # Eight threads must have started within the timeout, also on a busy machine.
        resolver = SystemResolver(timeout=1.0, slow_after=0.01, look_up=silence.look_up, clock=lambda: now)
        names = [f"slow{n}.dead.shop.test" for n in range(200)]
        assert await asyncio.gather(*map(resolver.resolve, names)) == [DNS_TIMEOUT] * 200
        assert len(silence.asked) == 8
        assert await resolver.resolve("fresh.dead.shop.test") == DNS_TIMEOUT
        silence.over.set()
        assert await resolver.resolve("www.shop.test") == ADDRESS
        now = 31.0
        assert await resolver.resolve("fresh.dead.shop.test") == ADDRESS
        resolver.close()

    asyncio.run(main())


def test_names_do_not_wait_for_ever_where_no_look_up_ends() -> None:
    silence = Silence()

    async def main() -> None:
        resolver = SystemResolver(threads=1, timeout=0.02, slow_after=0.01, stuck_after=0.1, look_up=silence.look_up)
        slow = await start(resolver, *(f"slow.{n}.test" for n in range(5)))
        assert await asyncio.gather(*slow) == [DNS_TIMEOUT] * 5
        resolver.close()
        silence.over.set()

    asyncio.run(main())


def test_domains_take_turns() -> None:
    waiting = NameQueue(share=2)
    for n in range(3):
        waiting.put("a", f"a{n}")
    waiting.put("b", "b0")
    assert [waiting.take(slow=False) for _ in range(4)] == ["a0", "b0", "a1", None]
    waiting.ended("a")
    assert waiting.take(slow=True) is None
    waiting.was_slow("a")
    assert (waiting.take(slow=False), waiting.take(slow=True)) == (None, "a2")
    assert not waiting


def test_several_silent_zones_make_their_domain_silent() -> None:
    zones = SilentZones(last_two_labels, 30.0)
    for n in range(7):
        assert [zones.no_answer(f"{m}.{n}.shop.test", 0.0) for m in range(9)] == [False] * 7 + [True, False]
    assert zones.covers("new.3.shop.test", 1.0)
    assert not zones.covers("www.shop.test", 1.0)
    for m in range(8):
        zones.no_answer(f"{m}.7.shop.test", 0.0)
    assert zones.covers("www.shop.test", 1.0)
    assert not zones.covers("www.shop.test", 31.0)
    zones.answered("a.b.shop.test")
    assert not zones.covers("www.shop.test", 1.0)


def test_a_host_that_waits_for_its_address_takes_no_place_of_a_request() -> None:
    silence = Silence()

    async def main() -> None:
        plan = plan_of(SiteSpec(urls=("http://slow.test/",), ignore_robots=True), fetchers=1, concurrency=1)
        resolver = SystemResolver(look_up=silence.look_up)
        frontier = Frontier(plan.pace, window=10, per_host=10)
        frontier.offer("slow.test", FrontierUrl(0, 1, "http://slow.test/", 0), 0.0)
        known, looked_up = asyncio.Event(), asyncio.Event()
        gate = HostGate(
            *(plan, cast(Any, SimpleNamespace(resolver=resolver)), frontier, cast(GuardedReader, None)),
            *(lambda *_: known.set(), looked_up.set),
            HostBookings(plan, frontier, lambda message: None, lambda: None),
        )

        def begin() -> int:
            taken = frontier.take(asyncio.get_running_loop().time())
            assert taken is not None
            host, entry = taken
            assert gate.rules_for(host, entry.url) is None
            frontier.put_back(host.name, entry, 0.0)
            return gate.introduce(host, entry.url)

        assert (begin(), gate.under_way, gate.busy) == (0, 0, True)
        assert frontier.take(asyncio.get_running_loop().time()) is None
        silence.over.set()
        await looked_up.wait()
        assert (begin(), gate.under_way) == (1, 1)
        await known.wait()
        assert gate.rules_for(frontier.host("slow.test"), "http://slow.test/") is not None
        resolver.close()

    asyncio.run(main())

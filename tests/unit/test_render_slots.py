"""Slots in browsers: limited over all processes, and shared fairly between jobs and senders."""

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path

import pytest

from silkline.crawl.render_turns import RenderTurns
from silkline.fetch import render_tickets
from silkline.fetch.render_slots import Slots, WaitingPage
from silkline.fetch.render_tickets import Tickets

LONG = 60.0
TICKET = """
import sys
from collections import Counter
from pathlib import Path
from silkline.fetch.render_tickets import Tickets
tickets = Tickets(Path(sys.argv[1]), "another job")
tickets.wait()
print("waits", flush=True)
sys.stdin.read()
"""


async def pages(slots: Slots, host: str, number: int, served: list[str], name: str = "") -> None:
    """Many pages that want a slot at the same time. Each says when it has one, and gives it back at once."""

    async def one() -> None:
        async with slots.one(WaitingPage(host), LONG):
            served.append(name or host)

    async with asyncio.TaskGroup() as group:
        for _ in range(number):
            group.create_task(one())


async def held(slots: Slots, host: str, stack: AsyncExitStack, number: int = 1) -> None:
    for _ in range(number):
        await stack.enter_async_context(slots.one(WaitingPage(host), LONG))


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not so():  # noqa: ASYNC110 - it is a fact of the file system, or of a list
            await asyncio.sleep(0.01)


async def until_waiting(folder: Path, jobs: int) -> None:
    await until(lambda: len(list(folder.glob("wait-*"))) == jobs)


def test_a_job_with_many_pages_lets_another_job_in(tmp_path: Path) -> None:
    """The first job has both slots and twenty pages that wait. The only page of the other job comes after at most one
    of them."""

    async def work() -> list[str]:
        many, one = Slots(tmp_path, 2, RenderTurns(), "many"), Slots(tmp_path, 2, RenderTurns(), "one")
        served = list[str]()
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            await held(many, "a", stack, 2)
            group.create_task(pages(many, "a", 20, served, "many"))
            await until_waiting(tmp_path, 1)
            group.create_task(pages(one, "b", 1, served, "one"))
            await until_waiting(tmp_path, 2)
            await stack.aclose()
        return served

    served = asyncio.run(work())
    assert "one" in served[:2]
    assert len(served) == 21
    assert not list(tmp_path.glob("wait-*"))


def test_a_job_that_holds_fewer_slots_comes_first(tmp_path: Path) -> None:
    """Even if the other job waits for longer."""

    async def work() -> list[str]:
        many, one = Slots(tmp_path, 2, RenderTurns(), "many"), Slots(tmp_path, 2, RenderTurns(), "one")
        served = list[str]()
        async with asyncio.TaskGroup() as group, AsyncExitStack() as slow, AsyncExitStack() as first:
            await held(many, "a", slow)
            await held(many, "a", first)
            group.create_task(pages(many, "a", 3, served, "many"))
            await until_waiting(tmp_path, 1)
            for _ in range(3):
                group.create_task(pages(one, "b", 1, served, "one"))
            await until_waiting(tmp_path, 2)
            await first.aclose()
            await until(lambda: len(served) == 6)
            await slow.aclose()
        return served

    assert asyncio.run(work())[0] == "one"


def test_senders_of_a_job_take_turns_by_the_time_that_they_used(tmp_path: Path) -> None:
    """A slow sender has one of two slots, and many pages wait: those of other hosts come first."""

    async def work() -> list[str]:
        turns, served = RenderTurns(), list[str]()
        slots = Slots(tmp_path, 2, turns, "job")
        async with asyncio.TaskGroup() as group, AsyncExitStack() as slow, AsyncExitStack() as first:
            await held(slots, "slow", slow)
            await held(slots, "slow", first)
            turns.used(WaitingPage("slow"), 30.0)
            group.create_task(pages(slots, "slow", 10, served))
            await until_waiting(tmp_path, 1)
            for host in ("good", "fine"):
                group.create_task(pages(slots, host, 2, served))
            await asyncio.sleep(0)
            await first.aclose()
            await until(lambda: len(served) == 14)
            await slow.aclose()
        return served

    served = asyncio.run(work())
    assert Counter(served[:4]) == {"good": 2, "fine": 2}
    assert served[:2] in (["good", "fine"], ["fine", "good"]), "and they take turns"


def test_many_hosts_of_one_domain_have_one_turn_before_the_browsers(tmp_path: Path) -> None:
    async def work() -> list[str]:
        slots, served = Slots(tmp_path, 1, RenderTurns(), "job"), list[str]()
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            await held(slots, "h.bad.com", stack)
            for number in range(10):
                group.create_task(pages(slots, f"h{number}.bad.com", 1, served))
            group.create_task(pages(slots, "www.good.org", 2, served))
            await until_waiting(tmp_path, 1)
            await stack.aclose()
        return served

    served = asyncio.run(work())
    assert [place for place, host in enumerate(served) if "good" in host] in ([0, 1], [0, 2])


def test_the_time_of_a_page_counts_while_it_still_holds_its_slot(tmp_path: Path) -> None:
    """A page that hangs ends after a long time. Its sender must not get another slot until then."""

    async def work() -> None:
        turns = RenderTurns()
        slots, served = Slots(tmp_path, 2, turns, "job"), list[str]()
        async with slots.one(WaitingPage("slow.com"), LONG):
            before = turns.place("slow.com", "")
            await asyncio.sleep(0.01)
            await pages(slots, "good.org", 1, served)
            assert turns.place("slow.com", "") > before

    asyncio.run(work())


def test_a_page_waits_for_as_long_as_others_get_slots(tmp_path: Path) -> None:
    """Otherwise it would lose its turn, and fail after a few times, although its sender did nothing wrong."""

    async def work() -> None:
        turns, served = RenderTurns(), list[str]()
        slots = Slots(tmp_path, 1, turns, "job")

        async def last() -> None:
            async with slots.one(WaitingPage("last.org"), 0.5):
                served.append("last.org")

        turns.used(WaitingPage("last.org"), 1_000.0)
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            await held(slots, "a.com", stack)
            group.create_task(last())
            for number in range(20):
                group.create_task(pages(slots, f"{number}.com", 1, served))
                await asyncio.sleep(0.05)
                await stack.aclose()
                await held(slots, f"{number}.net", stack)
            assert "last.org" not in served
            await stack.aclose()
        assert served[-1] == "last.org"

    asyncio.run(work())


def test_a_page_that_waits_too_long_or_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    async def work() -> None:
        slots, served = Slots(tmp_path, 1, RenderTurns(), "job"), list[str]()
        async with slots.one(WaitingPage("a"), LONG):
            with pytest.raises(TimeoutError):
                async with slots.one(WaitingPage("b"), 0.01):
                    raise AssertionError
            waiting = asyncio.create_task(pages(slots, "c", 1, served))
            await until_waiting(tmp_path, 1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await pages(slots, "d", 3, served)
        assert served == ["d"] * 3

    asyncio.run(work())
    assert not list(tmp_path.glob("wait-*"))


def test_a_folder_that_cannot_be_used_is_an_error_for_every_page(tmp_path: Path) -> None:
    async def work() -> None:
        slots = Slots(tmp_path / "file" / "slots", 1, RenderTurns())
        for _ in range(2):
            with pytest.raises(OSError, match="file"):
                async with slots.one(WaitingPage("a"), LONG):
                    raise AssertionError

    (tmp_path / "file").touch()
    asyncio.run(work())


@contextmanager
def another_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has a ticket, and never looks for a slot."""
    process = subprocess.Popen(
        [sys.executable, "-c", TICKET, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process, closing(process.stdin or sys.stdin):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waits\n"
            yield process
        finally:
            process.kill()


def test_tickets_of_dead_and_stopped_processes_hold_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Tickets(tmp_path, "ours")
    with another_process(tmp_path) as other:
        monkeypatch.setattr(render_tickets, "_FRESH", LONG)
        assert not ours.is_first(Counter())
        assert ours.is_first(Counter({"another job": 1})), "it holds a slot, and we hold none"
        monkeypatch.setattr(render_tickets, "_FRESH", 1.0)
        (ticket,) = tmp_path.glob("wait-*")
        long_ago = time.time() - 100
        os.utime(ticket, (long_ago, long_ago))
        assert ours.is_first(Counter()), "it does not look for a slot"
        monkeypatch.setattr(render_tickets, "_FRESH", 1_000.0)
        assert not ours.is_first(Counter())
        other.kill()
        other.wait()
        assert ours.is_first(Counter())
        assert not list(tmp_path.glob("wait-*"))


async def known_as_slow(slots: Slots, turns: RenderTurns) -> None:
    """A page of this sender has held a slot for long."""
    page = WaitingPage("hang.com")
    async with slots.one(page, LONG):
        turns.used(page, 27.0)


def test_a_process_with_slow_pages_only_lets_others_of_its_job_go_first(tmp_path: Path) -> None:
    """It has waited for longer. Before, each page of the others waited for one page that hangs."""

    async def work() -> list[str]:
        turns, served = RenderTurns(), list[str]()
        slow, quick = Slots(tmp_path, 1, turns, "job"), Slots(tmp_path, 1, RenderTurns(), "job")
        await known_as_slow(slow, turns)
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            await held(quick, "a.org", stack)
            group.create_task(pages(slow, "hang.com", 3, served))
            await until_waiting(tmp_path, 1)
            group.create_task(pages(quick, "good.org", 10, served))
            await until_waiting(tmp_path, 2)
            await stack.aclose()
        return served

    assert asyncio.run(work()) == ["good.org"] * 10 + ["hang.com"] * 3


def test_a_quick_page_beside_slow_ones_does_not_wait_like_them(tmp_path: Path) -> None:
    async def work() -> list[str]:
        turns, served = RenderTurns(), list[str]()
        mixed, quick = Slots(tmp_path, 1, turns, "job"), Slots(tmp_path, 1, RenderTurns(), "job")
        await known_as_slow(mixed, turns)
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            await held(quick, "a.org", stack)
            group.create_task(pages(mixed, "hang.com", 1, served))
            group.create_task(pages(mixed, "fine.org", 1, served))
            await until_waiting(tmp_path, 1)
            group.create_task(pages(quick, "good.org", 10, served))
            await until_waiting(tmp_path, 2)
            await stack.aclose()
        return served

    assert asyncio.run(work())[0] == "fine.org"


def test_slow_pages_get_one_slot_of_their_job_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = Tickets(tmp_path, "job"), Tickets(tmp_path, "job")
    slow.wait(slow=True)
    quick.wait()
    assert not slow.is_first(Counter(), slow=True)
    assert quick.is_first(Counter())
    monkeypatch.setattr(render_tickets, "_PATIENCE", 0.0)
    assert slow.is_first(Counter(), slow=True)
    assert not quick.is_first(Counter())
    assert not slow.is_first(Counter({"job": 1}), slow=True, slow_held=True), "one of their pages is in a browser"
    assert quick.is_first(Counter({"job": 1}), slow_held=True)


def test_jobs_take_turns_by_their_oldest_tickets_whatever_their_senders_are(tmp_path: Path) -> None:
    slow, other, quick = Tickets(tmp_path, "job"), Tickets(tmp_path, "other"), Tickets(tmp_path, "job")
    slow.wait(slow=True)
    other.wait()
    quick.wait()
    assert [each.is_first(Counter()) for each in (other, quick)] == [False, True]
    assert not slow.is_first(Counter(), slow=True)
    quick.leave()
    assert slow.is_first(Counter(), slow=True)
    slow.leave()
    assert other.is_first(Counter())


def test_a_ticket_says_whether_there_are_only_slow_pages_now(tmp_path: Path) -> None:
    first, second = Tickets(tmp_path, "job"), Tickets(tmp_path, "job")
    first.wait(slow=True)
    second.wait()
    assert second.is_first(Counter())
    first.wait()
    assert not second.is_first(Counter())
    assert len(list(tmp_path.glob("wait-*"))) == 2
    first.leave()
    second.leave()
    assert not list(tmp_path.iterdir())

"""The reader in a process of its own: no answer is lost, however late the event loop of its owner looks."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from typing import Any

import msgspec
import pytest

from silkline.crawl import reader_link
from silkline.crawl.isolated_reader import NO_ROOM, IsolatedReader, ReaderDied
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.reader_link import ReaderServer
from silkline.crawl.reader_process import ReadRobots, TaskReader
from silkline.fetch.robots import Robots
from silkline.model.spec import SiteSpec
from silkline.reading_marks import ReadingMarks

PLAN = plan_of(SiteSpec(url="http://a.example/"), fetchers=1, concurrency=1)
TASK = ReadRobots("http://a.example/robots.txt", b"User-agent: *\nDisallow: /x\n", 0.0, "silkline")


def test_what_is_submitted_while_the_reader_becomes_idle_is_read_too() -> None:
    async def read_twice() -> list[Any]:
        loop = asyncio.get_running_loop()
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1)
        answers: list[Any] = []
        done = loop.create_future()

        def second(value: Any) -> None:
            answers.append(value)
            done.set_result(None)

        def first(value: Any) -> None:
            answers.append(value)
            # After the task that answers has ended, and before anybody has noticed that.
            loop.call_soon(reader.submit, TASK, 10, "a.example", second)

        reader.submit(TASK, 10, "a.example", first)
        try:
            await asyncio.wait_for(done, 60)
        finally:
            reader.close()
        return answers

    answers = asyncio.run(read_twice())
    assert [type(answer) for answer in answers] == [Robots, Robots]


@pytest.mark.parametrize(
    "forged",
    [b"\xc1", b"\xa1\xff", b"\x91" * 100_000, msgspec.msgpack.encode({"group": "\n", "expires_at": 1.0})],
    ids=["no msgpack", "no text", "lists in lists", "no rules"],
)
def test_a_reader_that_forges_an_answer_is_killed_and_only_its_input_fails(
    forged: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: TaskReader, task: ReadRobots) -> Any:
        return msgspec.Raw(forged) if task.body == b"evil" else Robots("", 1.0)

    monkeypatch.setattr(TaskReader, "read", read)

    async def read_both() -> tuple[Any, Any]:
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1, here=True)
        try:
            evil = msgspec.structs.replace(TASK, body=b"evil")
            return await reader.read(evil, 10, "a.example"), await reader.read(TASK, 10, "b.example")
        finally:
            reader.close()

    assert asyncio.run(read_both()) == (
        ReaderDied("the reader sent an answer that is not valid, and was killed"),
        Robots("", 1.0),
    )


def test_a_message_that_comes_while_the_loop_is_busy_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_link, "_STATUS_SECONDS", 0.05)

    async def ask() -> tuple[int, list[str]]:
        server = ReaderServer(PLAN, ReadingMarks.open(""), 1, 1 << 30)
        server._control.close()
        server._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server._control.setblocking(False)
        killed: list[str] = []
        asked = asyncio.get_running_loop().create_task(server.status(lambda: killed.append("killed")))
        await asyncio.sleep(0)
        theirs.send(b"9")
        # The loop stands still for longer than a status may take: it sees the message and the end of the wait together.
        time.sleep(0.2)  # noqa: ASYNC251
        try:
            return await asyncio.wait_for(asked, 30), killed
        finally:
            server.close()
            theirs.close()

    status, _ = asyncio.run(ask())
    assert status == 9


def with_read_seconds(seconds: float) -> Any:
    return msgspec.structs.replace(PLAN, tuning=msgspec.structs.replace(PLAN.tuning, read_seconds=seconds))


def test_time_in_which_the_reader_has_no_cpu_is_not_the_fault_of_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader is stopped until its owner looks whether the time is up."""
    looked: list[int] = []
    measured = reader_link.cpu_seconds

    def look(pid: int) -> float:
        looked.append(pid)
        if len(looked) <= 2:
            os.kill(pid, signal.SIGSTOP if len(looked) == 1 else signal.SIGCONT)
        return measured(pid)

    monkeypatch.setattr(reader_link, "cpu_seconds", look)
    monkeypatch.setattr(reader_link, "_WALL_FACTOR", 300)

    async def read() -> Any:
        reader = IsolatedReader(with_read_seconds(0.2), ReadingMarks.open(""), 1)
        try:
            return await reader.read(TASK, 10, "a.example")
        finally:
            reader.close()

    assert isinstance(asyncio.run(read()), Robots)
    assert len(looked) >= 2


def test_a_reader_that_never_runs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_link, "cpu_seconds", lambda pid: os.kill(pid, signal.SIGSTOP) or 0.0)

    async def read() -> Any:
        reader = IsolatedReader(with_read_seconds(0.1), ReadingMarks.open(""), 1)
        try:
            return await reader.read(TASK, 10, "a.example", blamed=True)
        finally:
            reader.close()

    assert asyncio.run(read()) == ReaderDied("time: it was not read within 0.1 s")


def test_a_large_input_of_a_host_with_bombs_has_the_time_that_it_needs() -> None:
    async def seconds() -> tuple[float, float]:
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1)
        reader._deaths["a.example"] = 1_000
        return reader._seconds_for("a.example", 1_000), reader._seconds_for("a.example", 5 << 20)

    small, large = asyncio.run(seconds())
    assert small < 1.0
    assert large >= 2.5


def test_hosts_take_turns() -> None:
    async def read() -> list[str]:
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1)
        order: list[str] = []
        done = asyncio.Event()

        def answered(name: str) -> None:
            order.append(name)
            if len(order) == 13:
                done.set()

        names = [*(f"bomb {number}" for number in range(10)), "good 0", "good 1", "other 0"]
        for name in names:
            reader.submit(TASK, 10, f"{name.split()[0]}.example", lambda _, name=name: answered(name))  # type: ignore[misc]
        try:
            await asyncio.wait_for(done.wait(), 60)
        finally:
            reader.close()
        return order

    order = asyncio.run(read())
    assert order[:5] == ["bomb 0", "good 0", "other 0", "bomb 1", "good 1"]
    assert order[5:] == [f"bomb {number}" for number in range(2, 10)]


def test_the_bytes_that_wait_are_limited_for_all_hosts_together() -> None:
    """Whatever is in flight when there is no more room: the rest is given back."""

    async def read() -> tuple[list[tuple[str, Any]], list[int], int]:
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1)
        answers: list[tuple[str, Any]] = []
        held = []
        done = asyncio.Event()

        def answered(host: str, answer: Any) -> None:
            answers.append((host, answer))
            if not reader.waiting:
                done.set()

        for number in range(100):
            host = f"bad{number}.com"
            reader.submit(TASK, 19 << 20, host, lambda answer, host=host: answered(host, answer), may_wait=True)  # type: ignore[misc]
            held.append(reader._bytes)
            assert reader.room == (64 << 20) - reader._bytes
        reader.submit(TASK, 1 << 20, "good.org", lambda answer: answered("good.org", answer), may_wait=True)
        reader.submit(TASK, 1 << 20, "robots.org", lambda answer: answered("robots.org", answer))
        try:
            await asyncio.wait_for(done.wait(), 60)
        finally:
            reader.close()
        return answers, held, reader.room

    answers, held, room = asyncio.run(read())
    assert max(held) <= 64 << 20
    assert sorted(host for host, answer in answers if answer is not NO_ROOM) == sorted(
        ["bad0.com", "bad1.com", "bad2.com", "good.org", "robots.org"]
    )
    assert [answer for _, answer in answers].count(NO_ROOM) == 97
    assert room == 64 << 20


def test_an_input_gives_way_to_one_that_is_read_before_it() -> None:
    async def read() -> list[str]:
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1)
        given_back: list[str] = []

        def answered(host: str, answer: Any) -> None:
            if answer is NO_ROOM:
                given_back.append(host)

        for host in (*["bad.com"] * 3, *["small.com"] * 40, "good.org"):
            size = 1_000 if host == "small.com" else 21 << 20
            reader.submit(TASK, size, host, lambda answer, host=host: answered(host, answer), may_wait=True)  # type: ignore[misc]
        reader.close()
        return given_back

    # The last 16 of 64 KiB have no room. Then a host that has nothing there needs 21 MiB, and the last inputs leave.
    given_back = asyncio.run(read())
    assert given_back[:24] == ["small.com"] * 24
    assert given_back.count("bad.com") == 1
    assert "good.org" not in given_back


def test_deaths_count_for_a_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_link, "cpu_seconds", lambda pid: os.kill(pid, signal.SIGKILL) or 0.0)

    async def deaths() -> int:
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1)
        try:
            for host in ("a.bad.com", "b.bad.com:8080"):
                answer = await reader.read(TASK, 10, host, blamed=True)
                assert isinstance(answer, ReaderDied)
        finally:
            reader.close()
        return reader._deaths["bad.com"]

    assert asyncio.run(deaths()) == 2


def test_the_time_of_a_reading_counts_for_its_domain_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PDF that was cut at its time limit is no death, but its host comes last from then on."""
    clock = iter(range(0, 1_000, 3))
    monkeypatch.setattr(reader_link, "cpu_seconds", lambda pid: float(next(clock)))

    async def places() -> list[float]:
        reader = IsolatedReader(PLAN, ReadingMarks.open(""), 1)
        try:
            await reader.read(TASK, 10, "a.bad.com", address="192.0.2.1")
        finally:
            reader.close()
        senders = (("b.bad.com", "192.0.2.2"), ("other.com", "192.0.2.1"), ("good.org", "192.0.2.3"))
        return [reader.place(*sender) for sender in senders]

    assert asyncio.run(places()) == [3.0, 3.0, 0.25]

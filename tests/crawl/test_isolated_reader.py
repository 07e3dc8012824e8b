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

from silkline.crawl import isolated_reader
from silkline.crawl.isolated_reader import IsolatedReader, ReaderDied, ReaderServer
from silkline.crawl.planning import plan_of
from silkline.crawl.reader_process import ReadRobots
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


def test_a_message_that_comes_while_the_loop_is_busy_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_reader, "_STATUS_SECONDS", 0.05)

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
    measured = isolated_reader.cpu_seconds

    def look(pid: int) -> float:
        looked.append(pid)
        if len(looked) <= 2:
            os.kill(pid, signal.SIGSTOP if len(looked) == 1 else signal.SIGCONT)
        return measured(pid)

    monkeypatch.setattr(isolated_reader, "cpu_seconds", look)
    monkeypatch.setattr(isolated_reader, "_WALL_FACTOR", 300)

    async def read() -> Any:
        reader = IsolatedReader(with_read_seconds(0.2), ReadingMarks.open(""), 1)
        try:
            return await reader.read(TASK, 10, "a.example")
        finally:
            reader.close()

    assert isinstance(asyncio.run(read()), Robots)
    assert len(looked) >= 2


def test_a_reader_that_never_runs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_reader, "cpu_seconds", lambda pid: os.kill(pid, signal.SIGSTOP) or 0.0)

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

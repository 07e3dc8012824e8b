"""The reader in a process of its own: no answer is lost, however late the event loop of its owner looks."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

from silkline.crawl import isolated_reader
from silkline.crawl.isolated_reader import IsolatedReader, ReaderServer
from silkline.crawl.plan import plan_of
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

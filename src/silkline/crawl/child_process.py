"""The entry point of a child process: `python -m silkline.crawl.child_process fetcher|parser WIRE DOOR MARKS PARENT
[METER NAME]`.

It exits when its connection to the leader closes. The kernel kills it when the leader dies.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvloop

from silkline.confine.roles import confine_reader, refuse_rings
from silkline.crawl.confinement import confine_fetcher_of, load_everything
from silkline.crawl.connection import Wire
from silkline.crawl.fetcher import Fetcher
from silkline.crawl.fetcher_setup import calm_collector, open_client
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.messages import (
    Batch,
    Book,
    Drained,
    FetcherStatus,
    LostParser,
    Ping,
    Pong,
    Refill,
    StartFetcher,
    to_fetcher,
)
from silkline.crawl.parser import Parser, ParserPool
from silkline.crawl.process_end import EXIT_DISK_FULL, die_with
from silkline.crawl.reading_memory import MemorySize, limit_memory
from silkline.crawl.suspects import Suspects
from silkline.metrics.process import inherit
from silkline.private_files import is_disk_full
from silkline.reading_marks import ReadingMarks


class RemoteDesk:
    """The leader, at the other end of a connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def hand_in(self, batch: Batch) -> None:
        self._wire.send(batch)

    def show(self, status: FetcherStatus) -> None:
        self._wire.send(status)

    def ask_for_more(self, cursor: int, foreign: bool, /) -> None:
        self._wire.send(Refill(cursor, foreign))

    def book(self, hosts: Book) -> None:
        self._wire.send(hosts)

    def drained(self) -> None:
        self._wire.send(Drained())


class Process:
    """One child process, from its first message to its last."""

    def __init__(self, role: str, marks: ReadingMarks) -> None:
        self._role = role
        self._marks = marks
        self._loop = asyncio.get_running_loop()
        self.gone = asyncio.Event()
        self._wire = Wire(to_fetcher(), self._heard, self.gone.set)
        self._fetcher: Fetcher | None = None
        self._ends: list[tuple[int, socket.socket]] = []
        self._adopt: Callable[[int, socket.socket], Any] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, wire: socket.socket, door: socket.socket) -> None:
        self._loop.set_exception_handler(_crash)
        await self._wire.open(wire)
        door.setblocking(False)
        self._loop.add_reader(door.fileno(), self._knock, door)
        await self.gone.wait()

    def _heard(self, message: Any) -> None:
        if isinstance(message, Ping):
            self._wire.send(Pong())
        elif isinstance(message, StartFetcher):
            self._begin(message)
        elif self._fetcher is not None:
            self._fetcher.receive(message)

    def _begin(self, message: StartFetcher) -> None:
        if self._role == "parser":
            load_everything(message.plan)
            self._marks.give_up_descriptors()
            limit_memory(message.plan.tuning.read_memory, MemorySize().now())
            confine_reader()
            parser = Parser(message.plan, self._marks, message.slot)
            self._open_door(lambda _, end: self._spawn(parser.adopt(end)))
        else:
            pool = ParserPool(self._marks) if message.plan.parsers else None
            suspects = Suspects(message.blamed, everything=message.isolate_all)
            reader = GuardedReader(message.plan, self._marks, message.slot, pool=pool, suspects=suspects)
            reader.prepare()  # a confined fetcher cannot start a process
            self._marks.give_up_descriptors()
            confine_fetcher_of(message.plan)
            client = open_client(message.plan)
            self._fetcher = Fetcher(message.index, message.plan, client, reader, RemoteDesk(self._wire))
            if pool is not None:
                pool.on_lost = lambda slot: self._wire.send(LostParser(slot))
                self._open_door(pool.adopt)

    def _open_door(self, adopt: Callable[[int, socket.socket], Any]) -> None:
        self._adopt = adopt
        for number, end in self._ends:
            adopt(number, end)
        self._ends.clear()

    def _knock(self, door: socket.socket) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(door, 16, 4)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(door.fileno())
            return
        for fd in fds:
            end = (int.from_bytes(data, "big"), socket.socket(fileno=fd))
            if self._adopt is None:
                self._ends.append(end)
            else:
                self._adopt(*end)

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _crash(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An unexpected error: exit at once. The leader starts another process instead, unless the disk is full."""
    loop.default_exception_handler(context)
    os._exit(EXIT_DISK_FULL if is_disk_full(context.get("exception")) else 70)


async def serve(role: str, wire: socket.socket, door: socket.socket, marks: ReadingMarks) -> None:
    await Process(role, marks).run(wire, door)


def main(role: str, wire: str, door: str, marks: str, parent: str, meter: str = "", name: str = "") -> None:
    die_with(int(parent))
    if meter:
        inherit(int(meter), name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the leader handles ^C
    if role == "parser":
        refuse_rings()  # before the event loop creates one
    calm_collector()
    ends = socket.socket(fileno=int(wire)), socket.socket(fileno=int(door))
    uvloop.run(serve(role, *ends, ReadingMarks(int(marks))))
    os._exit(0)  # there is nothing to save, and threads that still resolve a host need not be waited for


if __name__ == "__main__":
    main(*sys.argv[1:])

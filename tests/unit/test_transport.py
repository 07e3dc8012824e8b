"""Finished transfers are handed on without keeping the event loop from its turns. libcurl is replaced by a stand-in."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pycurl  # type: ignore[import-untyped]
import pytest

from silkline.fetch import transport as module
from silkline.fetch.transport import OnDone, Transport
from tests.support.fake_clock import FakeClock


class Multi:
    """Every handle that was added has ended when the timer fires."""

    def __init__(self) -> None:
        self.timer: Callable[[int], None]
        self.added: list[Any] = []
        self.told: set[Any] = set()

    def setopt(self, option: int, value: Any) -> None:
        if option == pycurl.M_TIMERFUNCTION:
            self.timer = value

    def add_handle(self, easy: Any) -> None:
        self.added.append(easy)

    def remove_handle(self, easy: Any) -> None:
        self.added.remove(easy)

    def socket_action(self, fd: int, ready: int) -> None:
        pass

    def info_read(self, most: int) -> tuple[int, list[Any], list[Any]]:
        new = [easy for easy in self.added if easy not in self.told]
        self.told.update(new[:most])
        return len(new[most:]), new[:most], []

    def close(self) -> None:
        assert self.added == []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    made = FakeClock()
    monkeypatch.setattr(module, "monotonic", made)
    return made


@pytest.fixture
def multi(monkeypatch: pytest.MonkeyPatch) -> Multi:
    made = Multi()
    monkeypatch.setattr(module.pycurl, "CurlMulti", lambda: made)
    return made


def run(multi: Multi, on_done: OnDone, pages: int, use: Callable[[Transport], Awaitable[None]]) -> Transport:
    async def main() -> Transport:
        loop = asyncio.get_running_loop()
        transport = Transport(loop, on_done, connections=10, most=10, burst=128)
        for page in range(pages):
            transport.add(page)
        multi.timer(0)
        await use(transport)
        transport.close()
        return transport

    return asyncio.run(main())


def handed_on(multi: Multi, clock: FakeClock, pages: int, seconds: float) -> tuple[list[int], Transport]:
    """In which turn of the loop each page was handed on, if reading one takes so long."""
    turns: list[int] = []
    turn = 0

    def on_done(easy: Any, code: int, message: str) -> None:
        clock.now += seconds
        turns.append(turn)

    async def count_turns(transport: Transport) -> None:
        nonlocal turn
        while len(turns) < pages:
            turn += 1
            await asyncio.sleep(0)

    return turns, run(multi, on_done, pages, count_turns)


def test_the_loop_has_a_turn_after_each_page_that_is_slow_to_read(multi: Multi, clock: FakeClock) -> None:
    turns, transport = handed_on(multi, clock, 40, 2.0)
    assert len(set(turns)) == 40
    assert transport.unwatched == 80.0


def test_quick_pages_are_handed_on_together(multi: Multi, clock: FakeClock) -> None:
    turns, transport = handed_on(multi, clock, 300, 0.0001)
    assert len(set(turns)) == 1
    assert transport.unwatched == 0.0


def test_many_pages_share_a_turn_up_to_its_length(multi: Multi, clock: FakeClock) -> None:
    turns, _ = handed_on(multi, clock, 100, 0.01)
    assert 15 <= len(set(turns)) <= 25


def test_a_finished_transfer_that_is_cancelled_is_not_handed_on(multi: Multi, clock: FakeClock) -> None:
    done: list[Any] = []
    first = asyncio.Event()

    def on_done(easy: Any, code: int, message: str) -> None:
        clock.now += 2.0
        done.append(easy)
        first.set()

    async def cancel_the_rest(transport: Transport) -> None:
        await first.wait()
        waiting = list(multi.added)
        for easy in waiting:
            transport.remove(easy)
        for _ in range(5):
            await asyncio.sleep(0)

    run(multi, on_done, 10, cancel_the_rest)
    assert 1 <= len(done) < 5


def test_sockets_that_are_slow_to_serve_leave_turns_to_the_loop_and_to_each_other(
    multi: Multi, clock: FakeClock
) -> None:
    served: list[tuple[int, int]] = []
    turn = 0

    def socket_action(fd: int, ready: int) -> None:
        if fd != pycurl.SOCKET_TIMEOUT:
            clock.now += 0.04
            served.append((turn, fd))

    multi.socket_action = socket_action  # type: ignore[method-assign]
    pairs = [socket.socketpair() for _ in range(40)]
    for _, theirs in pairs:
        theirs.send(b"x")  # never read, so each is ready all the time

    async def watch(transport: Transport) -> None:
        nonlocal turn
        for ours, _ in pairs:
            transport._watch(pycurl.POLL_IN, ours.fileno(), None, None)
        while len(served) < 80:
            turn += 1
            await asyncio.sleep(0)

    run(multi, lambda *_: None, 0, watch)
    for pair in pairs:
        for end in pair:
            end.close()
    turns = [turn for turn, _ in served]
    assert max(turns.count(each) for each in turns) <= 8
    assert len({fd for _, fd in served[:40]}) == 40

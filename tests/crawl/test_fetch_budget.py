"""Bodies that come slowly do not keep others from the memory for bodies on their way."""

import asyncio

import pytest

from silkline.crawl.decisions import Settle, TryAgain, decide
from silkline.crawl.plan import Tuning
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch import handle as module
from silkline.fetch.client import HttpClient
from silkline.fetch.handle import Budget, Handle
from silkline.model import fetched
from silkline.model.fetched import Fetched, Request
from silkline.model.ledger import FAILED
from tests.crawl.hostile_client import LOOPBACK, SETTINGS, with_client
from tests.crawl.hostile_routes import Asked
from tests.crawl.hostile_server import HostileServer
from tests.support.fake_clock import FakeClock
from tests.support.supervisors import PATIENCE

MIB = 1024 * 1024
PART = b"x" * 65_536


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    made = FakeClock(100.0)
    monkeypatch.setattr(module, "monotonic", made)
    return made


def handle_of(budget: Budget) -> Handle:
    made = Handle(SETTINGS, budget, LOOPBACK.check)
    made.limit(10 * MIB, cut=False)
    return made


def receive(handle: Handle, size: int) -> None:
    for _ in range(size // len(PART)):
        handle._on_body(PART)


@pytest.mark.parametrize("size", [7 * MIB, MIB - len(PART)])
def test_a_body_takes_the_place_of_much_slower_ones(clock: FakeClock, size: int) -> None:
    budget = Budget(7 * MIB)
    slow = [handle_of(budget) for _ in range(-(-7 * MIB // size))]
    for each in slow:
        receive(each, size)
    for _ in range(15):
        clock.now += 1.0
        for each in slow:
            each._on_body(b"ab")
    quick = handle_of(budget)
    receive(quick, 2 * MIB)
    assert quick.refusal is None
    assert quick.body() == PART * 32
    assert budget.held <= budget.limit
    dropped = [each for each in slow if each.refusal == fetched.MEMORY_FULL]
    assert dropped
    assert all(each.parts == [] and each._on_body(b"ab") == 0 for each in dropped)
    for each in (*slow, quick):
        each.clear()
    assert (budget.held, budget.holders) == (0, set())


def test_bodies_that_are_equally_fast_are_not_dropped_for_each_other(clock: FakeClock) -> None:
    budget = Budget(8 * MIB)
    handles = [handle_of(budget) for _ in range(8)]
    for _ in range(200):
        clock.now += 0.1
        for each in handles:
            if each.refusal is None and each.size < 3 * MIB and each._on_body(PART) == 0:
                each._let_go()  # as at the end of its transfer
    done = sum(each.refusal is None for each in handles)
    assert done >= 2


@pytest.mark.parametrize("seconds", [1.0, 15.0])
def test_a_large_page_comes_while_slow_ones_fill_the_memory(clock: FakeClock, seconds: float) -> None:
    """A body that came for one second is not slow yet: then the large page is the one that is dropped."""
    release = asyncio.Event()

    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write((b"10000\r\n" + PART + b"\r\n") * 48)
        await writer.drain()
        await release.wait()
        writer.write(b"0\r\n\r\n")

    async def large(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * MIB) + b"y" * 2 * MIB)
        await writer.drain()

    async def ask(client: HttpClient) -> tuple[Fetched, list[Fetched]]:
        holding = [asyncio.create_task(client.fetch(Request(server.url("/slow"))))]
        async with asyncio.timeout(PATIENCE):
            while client.buffered < 3 * MIB:  # noqa: ASYNC110 - libcurl receives in its own time
                await asyncio.sleep(0.01)
        assert client.buffered == 3 * MIB
        clock.now += seconds
        page = await client.fetch(Request(server.url("/big")))
        server._loop.call_soon_threadsafe(release.set)
        return page, await asyncio.gather(*holding)

    with HostileServer() as server:
        server.route("/slow", slow)
        server.route("/big", large)
        page, held = with_client(ask, max_buffered=4 * MIB)
    if seconds == 15.0:
        assert (page.reason, len(page.body)) == (None, 2 * MIB)
        assert [each.reason for each in held] == [fetched.MEMORY_FULL]
    else:
        assert page.reason == fetched.MEMORY_FULL
        assert [(each.reason, len(each.body)) for each in held] == [(None, 3 * MIB)]


def test_full_memory_is_no_try_of_a_url_but_it_ends() -> None:
    entry, again = FrontierUrl(0, 1, "http://good.test/", 0), []
    full = Fetched(entry.url, 200, fetched.MEMORY_FULL)
    while isinstance(action := decide(entry, full, Tuning()).action, TryAgain):
        again.append(action)
        entry = entry._replace(attempts=action.attempts, put_off=action.put_off)
    assert action == Settle(FAILED, fetched.MEMORY_FULL, None)
    assert [each.attempts for each in again] == [0] * 8 + [1, 2]
    assert [each.wait for each in again][:3] == [3.0, 12.0, 48.0]

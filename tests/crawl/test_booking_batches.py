"""The leader books hosts for its fetchers: in batches, through outages, and gives back what is left."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from silkline.crawl.address_limit import Address
from silkline.crawl.booking_batches import BookingBatches
from silkline.crawl.frontier import Frontier
from silkline.crawl.host_bookings import HostBookings
from silkline.crawl.messages import Book, BookHost, Granted, HostTime
from silkline.crawl.plan import Plan
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.url_queue import FrontierUrl
from silkline.model import host_wait as reasons
from silkline.model.database import Database
from silkline.model.spec import SiteSpec
from silkline.store import bookings
from silkline.store.bookings import Asked
from silkline.store.opening import open_database

JOB, OTHER = (f"018f0000-0000-7000-8000-00000000000{number}" for number in (1, 2))
PLAN: Plan = plan_of(SiteSpec(url="https://a.example/"), fetchers=1, concurrency=9)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(f"sqlite:///{tmp_path / 'silkline.db'}")
    yield opened
    opened.close()


def work(database: Database, play: Callable[[BookingBatches], Awaitable[None]], *, quiet: bool = True) -> None:
    async def run() -> None:
        progress = SimpleNamespace(database=database, job=SimpleNamespace(id=JOB))
        batches = BookingBatches(cast(Any, progress), PLAN, logging.getLogger("test"))
        try:
            await asyncio.wait_for(play(batches), 60)
        finally:
            batches.close(quiet=quiet)

    asyncio.run(run())


class Inbox:
    """What a fetcher gets."""

    def __init__(self) -> None:
        self.hosts: dict[str, HostTime] = {}
        self._came = asyncio.Event()

    def __call__(self, granted: Granted) -> None:
        self.hosts |= {each.host: each for each in granted.hosts}
        self._came.set()

    async def until(self, number: int) -> None:
        while len(self.hosts) < number:
            self._came.clear()
            await self._came.wait()


def ask(owner: int, *names: str, address: str = "", length: float = 4.0, kept: bool = False) -> Book:
    return Book(owner, [BookHost(name, 0.5, length, address, 2.0 if address else 0.0, kept) for name in names])


def test_what_comes_together_is_booked_in_one_statement(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    book = bookings.book

    def counting(opened: Database, job_id: str, asked: Sequence[Asked], addresses: Any) -> Any:
        calls.append(len(asked))
        return book(opened, job_id, asked, addresses)

    monkeypatch.setattr(bookings, "book", counting)

    async def play(batches: BookingBatches) -> None:
        one, other = Inbox(), Inbox()
        batches.ask(ask(1, *(f"{number}.example" for number in range(20))), one)
        batches.ask(ask(2, "other.example"), other)
        await one.until(20)
        await other.until(1)
        assert calls == [21]
        now = time.monotonic()
        assert all(each.starts <= now < each.ends for each in (*one.hosts.values(), *other.hosts.values()))

    work(database, play)


def test_the_rest_is_given_back_but_not_what_a_host_asked_for(database: Database) -> None:
    async def play(batches: BookingBatches) -> None:
        inbox = Inbox()
        batches.ask(ask(1, "a.example", length=50.0), inbox)
        batches.ask(ask(1, "b.example", length=50.0, kept=True), inbox)
        await inbox.until(2)

    work(database, play)
    booked, _ = bookings.book(database, OTHER, [Asked(f"{name}.example", 2, 0.5, 1.0) for name in "ab"], {})
    starts = {each.host: each.starts for each in booked}
    assert starts["a.example"] < 1.0
    assert starts["b.example"] > 40.0


def test_nothing_is_given_back_while_a_request_may_be_on_its_way(database: Database) -> None:
    async def play(batches: BookingBatches) -> None:
        inbox = Inbox()
        batches.ask(ask(1, "a.example", length=50.0), inbox)
        await inbox.until(1)

    work(database, play, quiet=False)
    booked, _ = bookings.book(database, OTHER, [Asked("a.example", 2, 0.5, 1.0)], {})
    assert booked[0].starts > 40.0


class Warned(logging.Handler):
    """Sets an event when a warning is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.event = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        assert "cannot be booked" in record.getMessage()
        self.event.set()


def test_hosts_wait_through_an_outage(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "silkline.db"

    async def play(batches: BookingBatches) -> None:
        warned = Warned()
        logging.getLogger("test").addHandler(warned)
        file.rename(tmp_path / "away")
        inbox = Inbox()
        batches.ask(ask(1, "a.example"), inbox)
        await warned.event.wait()
        logging.getLogger("test").removeHandler(warned)
        assert not inbox.hosts
        (tmp_path / "away").rename(file)
        await inbox.until(1)

    work(database, play)


def test_hosts_of_one_address_start_after_its_time(database: Database) -> None:
    async def play(batches: BookingBatches) -> None:
        bookings.book(database, OTHER, [], {"192.0.2.1": 100.0})
        inbox = Inbox()
        batches.ask(ask(1, "a.example", address="192.0.2.1"), inbox)
        batches.ask(ask(1, "b.example", address="192.0.2.2"), inbox)
        await inbox.until(2)
        starts = {host: each.starts - time.monotonic() for host, each in inbox.hosts.items()}
        assert starts["a.example"] > 90.0
        assert starts["b.example"] <= 0.0

    work(database, play)


def test_a_host_of_another_job_is_parked_until_its_time(database: Database) -> None:
    """The fetcher and the leader together."""
    bookings.book(database, OTHER, [Asked("a.example", 7, 0.1, 0.1)], {})

    async def play(batches: BookingBatches) -> None:
        frontier, opened = Frontier(PLAN.pace, window=9, per_host=9), asyncio.Event()
        fetcher: HostBookings

        def send(message: Book) -> None:
            batches.ask(message, fetcher.granted)

        fetcher = HostBookings(PLAN, frontier, send, opened.set)
        frontier.offer("a.example", FrontierUrl(0, 1, "http://a.example/", 0), 0.0)
        host = frontier.host("a.example")
        assert not fetcher.may_send(host)
        assert (host.parked, fetcher.unanswered) == (reasons.BOOKED, 1)
        await opened.wait()
        assert (host.parked, fetcher.unanswered) == ("", 0)
        assert host.booking is not None
        assert host.booking.behind == OTHER
        assert fetcher.may_send(host)
        free = frontier.host("b.example")
        await fetcher.turn(free)
        assert free.booking is not None
        assert fetcher.may_send(free)

    work(database, play)


def test_a_job_with_a_very_long_delay_does_not_park_the_host_for_others(database: Database) -> None:
    """Its own clock keeps its delay. Others wait as long as for the longest Crawl-delay, on the address too."""
    plan = msgspec.structs.replace(PLAN, pace=msgspec.structs.replace(PLAN.pace, delay=3600.0, per_address=8))

    async def play(batches: BookingBatches) -> None:
        frontier, opened, asked = Frontier(plan.pace, window=9, per_host=9), asyncio.Event(), []
        fetcher: HostBookings

        def send(message: Book) -> None:
            asked.extend(message.hosts)
            batches.ask(message, fetcher.granted)

        fetcher = HostBookings(plan, frontier, send, opened.set)
        frontier.offer("a.example", FrontierUrl(0, 1, "http://a.example/", 0), 0.0)
        host = frontier.host("a.example")
        host.address = Address(plan.pace, 1, "192.0.2.1")
        fetcher.may_send(host)
        await opened.wait()
        (entry,) = asked
        assert entry.address == "192.0.2.1"
        assert entry.address_time <= 30.0 / 8
        (other,), _ = bookings.book(database, OTHER, [Asked("a.example", 9, 0.5, 1.0)], {})
        assert other.starts < 40.0

    work(database, play)

"""Whose pages are read in isolation because they take long."""

from collections.abc import Callable

import pytest

from silkline.crawl import cpu_clock, reading
from silkline.crawl.cpu_clock import CpuClock
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.reader_process import ReadPage, TaskReader
from silkline.crawl.reading import SLOW, Body, PageReader, Reading, timed_reading
from silkline.crawl.reading_turns import sender_of
from silkline.crawl.slow_senders import (
    LARGE_PAGE,
    MANY_SLOW,
    MOST_QUICK,
    MOST_REMEMBERED,
    QUICK_FOR_A_SECOND,
    QUICK_UNTIL_TRUSTED,
    SUFFERS_FOR,
    SlowSenders,
)
from silkline.model.spec import SiteSpec
from silkline.reading_marks import ReadingMarks

ADDRESSES = {"slow.com": "192.0.2.1", "neighbour.org": "192.0.2.1", "good.org": "192.0.2.2"}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def remembered(clock: Clock | None = None) -> SlowSenders:
    return SlowSenders(lambda host: sender_of(host, ADDRESSES.get(host, "")), clock or Clock())


def note(senders: SlowSenders, *hosts: str, seconds: float = 0.0, size: int = 1000) -> None:
    for host in hosts:
        senders.note(f"http://{host}/page", size, seconds)


def included(senders: SlowSenders, *hosts: str, size: int = 1000) -> list[bool]:
    return [senders.includes(f"http://{host}/other", size) for host in hosts]


def test_the_domain_and_the_address_of_a_slow_page_are_slow() -> None:
    senders = remembered()
    note(senders, "good.org")
    assert not senders
    note(senders, "slow.com", seconds=0.3)
    assert senders
    hosts = ("slow.com", "www.slow.com:8080", "neighbour.org", "good.org", "new.net")
    assert included(senders, *hosts) == [True, True, True, False, False]


def test_a_sender_with_enough_quick_pages_is_trusted_again() -> None:
    senders = remembered()
    note(senders, "good.org")
    note(senders, "slow.com", seconds=0.3)
    note(senders, *["slow.com"] * (QUICK_UNTIL_TRUSTED - 1), *["good.org"] * 50)
    assert included(senders, "slow.com") == [True]
    note(senders, "slow.com", seconds=0.3)
    note(senders, *["slow.com"] * (QUICK_UNTIL_TRUSTED - 1))
    assert included(senders, "slow.com") == [True]
    note(senders, "slow.com")
    assert not senders


@pytest.mark.parametrize(
    ("seconds", "pages"),
    [(0.1, QUICK_UNTIL_TRUSTED), (0.5, QUICK_UNTIL_TRUSTED), (3.0, 3 * QUICK_FOR_A_SECOND), (1e300, MOST_QUICK)],
)
def test_a_slower_page_needs_more_quick_ones(seconds: float, pages: int) -> None:
    senders = remembered()
    note(senders, "good.org")
    note(senders, "slow.com", seconds=seconds)
    note(senders, *["slow.com"] * (pages - 1))
    assert included(senders, "slow.com") == [True]
    note(senders, "slow.com")
    assert not senders


def test_a_less_slow_page_does_not_make_up_for_a_slower_one() -> None:
    senders = remembered()
    note(senders, "good.org")
    note(senders, "slow.com", seconds=3.0)
    note(senders, "slow.com", seconds=0.1)
    note(senders, *["slow.com"] * (3 * QUICK_FOR_A_SECOND - 1))
    assert included(senders, "slow.com") == [True]
    note(senders, "slow.com")
    assert not senders


def test_while_many_are_slow_the_first_large_page_of_each_domain_is_a_proof() -> None:
    senders, large = remembered(), LARGE_PAGE + 1
    note(senders, "good.org")
    note(senders, "old.net", size=large)
    note(senders, *(f"slow{number}.com" for number in range(MANY_SLOW - 1)), seconds=0.3)
    assert included(senders, "new.net", size=large) == [False]
    note(senders, "last.com", seconds=0.3)
    assert included(senders, "new.net", "www.old.net", size=large) == [True, False]
    assert included(senders, "new.net", size=LARGE_PAGE) == [False]
    note(senders, "new.net")
    assert included(senders, "new.net", size=large) == [True], "a small page is no proof"
    note(senders, "new.net", size=large)
    assert included(senders, "new.net", size=large) == [False]
    note(senders, "new.net", size=large, seconds=0.3)
    note(senders, *["new.net"] * QUICK_UNTIL_TRUSTED)
    assert included(senders, "new.net", size=large) == [True], "its last large page was slow"


@pytest.mark.parametrize("own", ["slow.com", "www.slow.com", "neighbour.org"])
def test_a_slow_sender_is_left_alone_where_nobody_else_has_quick_pages(own: str) -> None:
    senders = remembered()
    note(senders, own)
    note(senders, "slow.com", seconds=0.3)
    assert included(senders, "slow.com") == [False]
    note(senders, "other.net", seconds=0.3)
    assert included(senders, "slow.com") == [False], "a page that is slow itself hardly suffers"
    note(senders, "good.org")
    assert included(senders, "slow.com") == [True]


def test_who_had_no_quick_page_for_a_minute_suffers_no_more() -> None:
    clock = Clock()
    senders = remembered(clock)
    note(senders, "good.org")
    note(senders, "slow.com", seconds=0.3)
    for moment in (15.0, 30.0):
        clock.now = 1000.0 + moment
        note(senders, "good.org")
    clock.now += SUFFERS_FOR
    assert included(senders, "slow.com") == [True]
    clock.now += 1
    assert included(senders, "slow.com") == [False]


def test_quick_pages_of_many_hosts_of_the_slow_sender_make_nobody_forgotten() -> None:
    clock = Clock()
    senders = remembered(clock)
    note(senders, "good.org")
    note(senders, "slow.com", seconds=0.3)
    for number in range(40):
        clock.now += 1
        note(senders, f"h{number}.slow.com", "neighbour.org", "slow.com")
        note(senders, "slow.com", seconds=0.3)
        assert included(senders, "slow.com") == [True]


def test_many_quick_senders_are_known_for_as_long_as_they_are_quick() -> None:
    clock = Clock()
    senders = remembered(clock)
    for second in range(200):
        clock.now = 1000.0 + second
        note(senders, *(f"h{number}.site{number}.org" for number in range(50)))
        note(senders, "slow.com", seconds=0.3)
        assert included(senders, "slow.com", "site1.org") == [True, False]


def test_what_is_remembered_is_limited_and_the_oldest_is_forgotten() -> None:
    senders = SlowSenders(lambda host: sender_of(host, f"at {host}"), Clock())
    note(senders, "good.org")
    note(senders, *(f"slow{number}.com" for number in range(6000)), seconds=0.3)
    note(senders, *(f"h{number}.com" for number in range(12_000)), size=LARGE_PAGE + 1)
    note(senders, *(f"www.slow{number}.com" for number in range(6000)))
    assert max(map(len, (senders._left, senders._proven, senders._senders, senders._noted))) <= MOST_REMEMBERED
    assert included(senders, "slow0.com", "slow5999.com") == [False, True]


class Times:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0
        self.asked = 0

    def perf_counter(self) -> float:
        return self.wall

    def thread_time(self) -> float:
        self.asked += 1
        return self.cpu


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    times = Times()
    monkeypatch.setattr(reading, "time", times)
    monkeypatch.setattr(cpu_clock, "time", times)
    return times


PLAN = plan_of(SiteSpec(url="http://a.example/"), fetchers=1, concurrency=1)
BODY = Body(1, "http://a.example/", b"", "text/html", "", "")


def lasting(times: Times, wall: float, cpu: float) -> Callable[[PageReader, Body], Reading]:
    def read(reader: PageReader, body: Body) -> Reading:
        times.wall += wall
        times.cpu += cpu
        return Reading(body.id)

    return read


def test_a_reader_in_isolation_says_how_long_it_took(times: Times, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PageReader, "reading_of", lasting(times, 3.0, 2.0))
    found = TaskReader(PLAN, ReadingMarks.open("").slot(1)).read(ReadPage(BODY))
    assert found.seconds == pytest.approx(2.0)


def test_only_cpu_time_makes_a_page_slow(times: Times, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = PageReader(PLAN)

    def measure(wall: float, cpu: float) -> float:
        monkeypatch.setattr(PageReader, "reading_of", lasting(times, wall, cpu))
        return timed_reading(reader, BODY).seconds

    assert measure(0.001, 0.001) == 0.0
    assert measure(SLOW * 20, SLOW / 2) == 0.0, "the machine was busy"
    assert measure(SLOW * 3, SLOW * 2) == pytest.approx(SLOW * 2)
    for _ in range(5):
        assert measure(0.001, 0.001) == 0.0
    assert SLOW * 2 - 0.01 <= measure(SLOW * 3, SLOW * 2) <= SLOW * 2 + 0.0001, "the pages before it do not count"


def test_cpu_time_is_asked_for_seldom(times: Times) -> None:
    clock = CpuClock()
    for _ in range(1000):
        times.wall += 0.001
        clock.begin(times.wall)
    assert times.asked <= 101

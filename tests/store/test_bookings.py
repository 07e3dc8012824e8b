"""The time of hosts: bookings form a queue, one owner after the other, and the delay holds between two owners."""

import threading
import time
from itertools import pairwise
from typing import NamedTuple

import pytest

from silkline.model.database import Database
from silkline.store import bookings
from silkline.store.bookings import Asked, Booked

FIRST, SECOND, THIRD = (f"018f0000-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))
HOST = "a.example"


class about:
    """Equal to a number of seconds from now that was fixed at some time of this test: some of them may have passed."""

    began = 0.0

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __eq__(self, other: object) -> bool:
        passed = time.monotonic() - self.began
        return isinstance(other, float) and self._seconds - passed - 0.001 <= other <= self._seconds + 0.001

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self._seconds} or up to {time.monotonic() - self.began:.1f} less"


@pytest.fixture(autouse=True)
def begun() -> None:
    about.began = time.monotonic()


def book(
    database: Database, job: str, owner: int, *, delay: float = 1.0, length: float = 10.0, host: str = HOST
) -> Booked:
    ((booked,), _) = bookings.book(database, job, [Asked(host, owner, delay, length)], {})
    return booked


def test_an_unused_host_is_free_at_once(database: Database) -> None:
    booked = book(database, FIRST, 1)
    assert (booked.host, booked.starts, booked.behind) == (HOST, 0.0, None)
    assert booked.ends == pytest.approx(10.0, abs=0.001)
    assert booked.idle >= bookings.FORGET_AFTER


def test_the_owner_extends_its_time(database: Database) -> None:
    book(database, FIRST, 1, length=5.0)
    again = book(database, FIRST, 1, length=20.0)
    assert (again.starts, again.behind) == (0.0, None)
    assert again.ends == pytest.approx(20.0, abs=0.001)
    assert book(database, FIRST, 1, length=1.0).ends == about(20.0), "it never gets shorter"


def test_others_come_behind_and_so_does_the_first_after_them(database: Database) -> None:
    book(database, FIRST, 1, length=10.0)
    second = book(database, SECOND, 2, length=5.0)
    assert second.starts == about(11.0)
    assert second.ends == about(16.0)
    assert second.behind == FIRST
    third = book(database, THIRD, 3, length=0.0)
    assert third.starts == about(17.0)
    assert third.behind == SECOND
    first = book(database, FIRST, 1)
    assert first.starts == about(18.0), "whoever had it goes behind"
    assert first.behind == THIRD


def test_a_new_process_of_the_same_job_waits_too(database: Database) -> None:
    book(database, FIRST, 1)
    assert book(database, FIRST, 2).starts == about(11.0)


@pytest.mark.parametrize(("before", "after"), [(3.0, 1.0), (1.0, 3.0)])
def test_the_longer_delay_counts(database: Database, before: float, after: float) -> None:
    book(database, FIRST, 1, delay=before)
    assert book(database, SECOND, 2, delay=after).starts == about(13.0)


def test_time_that_was_given_back_is_free_after_the_delay(database: Database) -> None:
    book(database, FIRST, 1, length=30.0)
    bookings.release(database, [(HOST, 1), ("other.example", 1)])
    assert book(database, SECOND, 2).starts == about(1.0)


def test_giving_back_keeps_the_time_of_those_before_and_behind(database: Database) -> None:
    book(database, FIRST, 1, length=10.0)
    book(database, SECOND, 2, length=10.0)
    bookings.release(database, [(HOST, 1)])
    assert book(database, SECOND, 2, length=10.0).starts == about(11.0)
    bookings.release(database, [(HOST, 2)])
    assert book(database, THIRD, 3).starts == about(11.0)


def test_many_hosts_in_one_statement(database: Database) -> None:
    asked = [Asked(f"{number}.example", 7, 1.0, 4.0) for number in range(1000, 0, -1)]
    booked, _ = bookings.book(database, FIRST, asked, {})
    assert {each.host for each in booked} == {each.host for each in asked}
    assert {each.starts for each in booked} == {0.0}


def test_bookings_that_ended_are_removed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    book(database, FIRST, 1, delay=0.001, length=0.0)
    book(database, FIRST, 1, host="b.example", length=100.0)
    bookings.sweep(database)
    assert book(database, SECOND, 2).idle < bookings.FORGET_AFTER, "remembered for a while"
    monkeypatch.setattr(bookings, "FORGET_AFTER", 0.0)
    bookings.release(database, [(HOST, 2)])
    book(database, SECOND, 2, delay=0.001, length=0.0)
    time.sleep(0.01)  # the clock of the database must move on
    bookings.sweep(database)
    assert book(database, THIRD, 3).idle == 3600
    assert book(database, THIRD, 3, host="b.example").behind == FIRST


def test_a_booking_of_a_wrong_clock_does_not_count(database: Database) -> None:
    bookings.book(database, FIRST, [Asked(HOST, 1, 1.0, 10.0)], {"192.0.2.1": 5.0})
    with database.transaction() as transaction:  # the clock was a day ahead when they were made
        transaction.script(
            "UPDATE host_bookings SET booked = booked + 86400, starts = starts + 86400, ends = ends + 86400"
        )
        transaction.script("UPDATE address_bookings SET booked = booked + 86400, ends = ends + 86400")
    (booked,), shared = bookings.book(database, SECOND, [Asked(HOST, 2, 1.0, 10.0)], {"192.0.2.1": 5.0})
    assert booked.starts == 0.0
    assert shared["192.0.2.1"] == pytest.approx(5.0, abs=0.001)


def test_a_long_queue_is_not_taken_for_a_wrong_clock(database: Database) -> None:
    for owner in range(200):
        last = book(database, FIRST, owner, delay=30.0, length=1.0)
    assert last.starts == about(199 * 31.0), "hours from now"
    assert book(database, SECOND, 999, delay=0.5).starts > last.ends


def test_an_address_has_one_line_of_time(database: Database) -> None:
    def share(seconds: float) -> float:
        _, shared = bookings.book(database, FIRST, [Asked(HOST, 1, 1.0, 1.0)], {"192.0.2.1": seconds})
        return shared["192.0.2.1"]

    assert share(2.0) == pytest.approx(2.0, abs=0.001)
    assert share(3.0) == about(5.0)
    _, others = bookings.book(database, SECOND, [], {"192.0.2.2": 1.0, "192.0.2.1": 1.0})
    assert others == {"192.0.2.2": pytest.approx(1.0, abs=0.001), "192.0.2.1": about(6.0)}


class Span(NamedTuple):
    starts: float
    ends: float


def test_owners_that_book_at_the_same_time_never_overlap(database: Database) -> None:
    """All of them want the same hosts, in batches and in any order."""
    hosts = [f"{letter}.example" for letter in "abcd"]
    spans: dict[str, list[Span]] = {host: [] for host in hosts}

    def work(owner: int) -> None:
        for turn in range(10):
            wanted = hosts[owner % 3 :] if turn % 2 else hosts[::-1]
            before = time.monotonic()
            asked = [Asked(host, 100 * owner + turn, 1.0, 0.5) for host in wanted]
            booked, _ = bookings.book(database, FIRST, asked, {})
            after = time.monotonic()
            for each in booked:
                spans[each.host].append(Span(after + each.starts, before + each.ends))

    threads = [threading.Thread(target=work, args=(owner,)) for owner in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in spans.values():
        assert len(found) > 20
        assert all(other.starts - one.ends > 0.999 for one, other in pairwise(sorted(found)))

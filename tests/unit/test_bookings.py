"""What a fetcher does with the time of a host."""

from silkline.crawl.frontier import Frontier
from silkline.crawl.host_status import Lookout
from silkline.crawl.plan import PACES
from silkline.crawl.politeness import Booking
from silkline.crawl.url_queue import FrontierUrl
from silkline.model import host_wait as reasons
from silkline.model.host_wait import why


def booked(starts: float, ends: float) -> Booking:
    booking = Booking()
    booking.take(starts, ends, 1.0)
    return booking


def test_requests_are_sent_between_start_and_end() -> None:
    booking = booked(2.0, 6.0)
    assert [booking.covers(now) for now in (1.9, 2.0, 6.0, 6.1)] == [False, True, True, False]


def test_more_time_without_a_gap_extends_it() -> None:
    booking = booked(2.0, 6.0)
    booking.take(5.0, 9.0, 5.0)
    assert (booking.starts, booking.ends, booking.next) == (2.0, 9.0, None)


def test_time_behind_another_job_comes_after_the_current_part() -> None:
    booking = booked(2.0, 6.0)
    booking.take(10.0, 14.0, 5.0)
    assert [booking.covers(now) for now in (6.0, 8.0, 10.0, 14.5)] == [True, False, True, False]


def test_time_that_comes_late_replaces_what_ended() -> None:
    booking = booked(2.0, 6.0)
    booking.take(10.0, 14.0, 7.0)
    assert (booking.starts, booking.ends, booking.next) == (10.0, 14.0, None)


def test_a_host_whose_turn_comes_later_says_for_whom_it_waits() -> None:
    frontier = Frontier(PACES["normal"], window=10, per_host=10)
    frontier.offer("a.example", FrontierUrl(0, 1, "http://a.example/", 0), 0.0)
    host = frontier.host("a.example")
    host.parked = reasons.BOOKED
    host.booking = booked(8.0, 12.0)
    host.booking.behind = "018f-first"
    (wait,) = Lookout(frontier).look(5.0, 1_000_005.0)
    assert (wait.reason, wait.seconds, wait.next_at) == (reasons.BOOKED, 3.0, 1_000_008.0)
    assert why(wait) == "job 018f-first fetches from it first, jobs take turns"

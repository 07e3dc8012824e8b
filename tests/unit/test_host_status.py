"""Why a host waits: every reason is found, told in words, and the number of hosts that are looked at is bounded."""

from datetime import UTC, datetime

import msgspec
import pytest

from silkline.crawl import host_status as lookout
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.host_status import SHOWN, Lookout
from silkline.crawl.plan import Pace
from silkline.crawl.url_queue import FrontierUrl
from silkline.model import host_wait as reasons
from silkline.model.host_wait import Wait, in_words, waits_in, what_next, why

PACE = Pace(delay=1.0, per_host=2, per_address=8, patience=1.0, most=60.0)
DAWN = 1_000_000.0
"""The time of day when the clock of the frontier says 0."""


def frontier(*hosts: str, urls: int = 3) -> Frontier:
    made = Frontier(PACE, window=100_000, per_host=100)
    for place, host in enumerate(hosts):
        for number in range(urls):
            id = 1 + place * urls + number
            made.offer(host, FrontierUrl(0, id, f"https://{host}/{number}", 0), 0.0)
    return made


def only(found: Frontier, now: float = 0.0) -> Wait:
    (wait,) = Lookout(found).look(now, DAWN + now)
    return wait


def ask(found: Frontier, now: float = 0.0) -> HostQueue:
    """Start one request."""
    taken = found.take(now)
    assert taken is not None
    found.started(taken[0], now)
    return taken[0]


def test_the_delay_of_the_crawl() -> None:
    found = frontier("a.example")
    ask(found)
    wait = only(found)
    assert (wait.reason, wait.seconds, wait.queued, wait.in_flight) == (reasons.DELAY, 1.0, 2, 1)
    assert wait.next_at == DAWN + 1.0


def test_the_delay_of_robots_txt() -> None:
    found = frontier("a.example")
    found.host("a.example").clock.crawl_delay = 5.0
    ask(found)
    wait = only(found)
    assert (wait.reason, wait.seconds, wait.next_at) == (reasons.CRAWL_DELAY, 5.0, DAWN + 5.0)
    assert wait.seconds_left == pytest.approx(5.0 + 2 * 5.0)


def test_slow_answers() -> None:
    found = frontier("a.example")
    host = ask(found)
    host.clock.answered(3.0, 3.0)
    found.ended(host, 3.0)
    ask(found, 3.0)
    wait = only(found, 3.0)
    assert (wait.reason, wait.seconds) == (reasons.SLOW_ANSWERS, 3.0)


@pytest.mark.parametrize(("said", "reason"), [(60.0, reasons.RETRY_AFTER), (None, reasons.REFUSED)])
def test_a_host_that_asked_to_be_left_alone(said: float | None, reason: str) -> None:
    found = frontier("a.example")
    host = ask(found)
    host.clock.trouble = "http_429"
    host.clock.refused(1.0, 0.0, said, 3600.0)
    found.ended(host, 1.0)
    wait = only(found, 1.0)
    assert (wait.reason, wait.detail) == (reason, "http_429")
    assert wait.next_at == pytest.approx(DAWN + 1.0 + wait.seconds)
    assert said is None or wait.seconds == said


def test_errors_are_told_until_they_are_over() -> None:
    found = frontier("a.example")
    host = ask(found)
    host.clock.trouble = "timeout"
    host.clock.failed(1.0, 0.0)
    found.ended(host, 1.0)
    assert (only(found, 1.0).reason, only(found, 1.0).detail) == (reasons.ERRORS, "timeout")
    for now in range(10, 60, 10):
        host.clock.answered(now, 0.01)
    host.clock.started(60.0)
    assert (only(found, 60.0).reason, only(found, 60.0).detail) == (reasons.DELAY, "")


def test_a_parked_host_says_why() -> None:
    found = frontier("a.example")
    for reason in (reasons.ROBOTS_LOADING, reasons.ADDRESS):
        found.host("a.example").parked = reason
        assert (only(found).reason, only(found).next_at) == (reason, None)


def test_as_many_requests_as_it_may_have() -> None:
    found = frontier("a.example")
    ask(found, 0.0)
    ask(found, 10.0)
    assert (only(found, 20.0).reason, only(found, 20.0).in_flight) == (reasons.BUSY, 2)


def test_deeper_pages_wait_for_their_level() -> None:
    found = Frontier(PACE, window=100, per_host=100)
    found.offer("a.example", FrontierUrl(3, 1, "https://a.example/", 3), 0.0)
    found.set_level(2, 0.0)
    assert only(found).reason == reasons.LEVEL


def test_a_page_that_is_tried_again() -> None:
    found = frontier("a.example", urls=1)
    host, entry = found.take(0.0) or pytest.fail("nothing to take")
    found.retry(host.name, entry, 12.0)
    wait = only(found)
    assert (wait.reason, wait.queued, wait.next_at) == (reasons.PAGE_RETRY, 1, DAWN + 12.0)


def test_a_page_that_is_tried_again_when_its_host_allows_it() -> None:
    found = frontier("a.example", urls=1)
    host, entry = found.take(0.0) or pytest.fail("nothing to take")
    host.clock.trouble = "http_503"
    host.clock.refused(0.0, 0.0, 60.0, 3600.0)
    found.retry(host.name, entry, host.clock.next_at)
    assert (only(found).reason, only(found).seconds) == (reasons.RETRY_AFTER, 60.0)


def test_a_host_with_nothing_to_do_does_not_wait() -> None:
    found = frontier("a.example", urls=1)
    ask(found)
    assert Lookout(found).look(0.0, DAWN) == []


def test_those_that_hold_the_crawl_up_most_come_first_and_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "_LOOKED_AT", 10)
    names = [f"host{number}.example" for number in range(95)]
    found = frontier(*names, urls=1)
    found.host(names[3]).clock.sleep_until(50.0, reasons.ADDRESS)
    found.host(names[91]).clock.sleep_until(500.0, reasons.ADDRESS)
    looking = Lookout(found)
    first = looking.look(0.0, DAWN)
    assert first[0].host == names[3]
    assert len(first) == 10
    for _ in range(9):
        last = looking.look(0.0, DAWN)
    assert [wait.host for wait in last][:2] == [names[91], names[3]]
    assert len(last) == SHOWN


@pytest.mark.parametrize("reason", sorted(reasons.REASONS))
def test_every_reason_has_words(reason: str) -> None:
    wait = Wait("a.example", 3, 2, reason, "http_429", 5.0, None, 9.0)
    assert why(wait) not in ("", reason)
    assert in_words(wait, datetime.now(UTC)) == why(wait)


def test_words_say_when() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    wait = Wait("a.example", 3, 0, reasons.CRAWL_DELAY, "", 5.0, now.timestamp() + 3, 15.0)
    assert in_words(wait, now) == "robots.txt asks for 5 s between pages; next page in 3 s"
    wait = wait._replace(reason=reasons.RETRY_AFTER, detail="http_429", seconds=300.0, next_at=now.timestamp() + 61)
    assert in_words(wait, now) == "the server said 429, Retry-After 5 min; next page in 61 s"
    assert what_next(wait._replace(next_at=now.timestamp() - 9), now) == "next page any moment"


def test_what_was_stored_is_read_and_what_is_odd_is_left_out() -> None:
    wait = Wait("a.example", 3, 2, reasons.BUSY, "", 0.0, None, 9.0)
    stored = msgspec.json.decode(msgspec.json.encode(wait._asdict()))
    odd = [["a.example", 1.0], {"host": "a.example"}, 7, {**stored, "queued": "many"}, {**stored, "host": 3}]
    assert waits_in({"waits": [*odd, stored]}) == [wait]
    assert waits_in({}) == waits_in({"waits": "none"}) == []

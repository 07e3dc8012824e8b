"""Clocks of hosts and addresses."""

from hypothesis import given
from hypothesis import strategies as st

from silkline.crawl.address_limit import Address
from silkline.crawl.plan import PACES, Pace
from silkline.crawl.politeness import Clock, retry_delay

NORMAL = Pace(delay=1.0, per_host=2, per_address=4, patience=2.0, most=60.0)


def test_the_largest_of_all_delays_holds() -> None:
    clock = Clock(NORMAL)
    assert clock.delay == 1.0
    clock.crawl_delay = 7.0
    assert clock.delay == 7.0
    clock.answered(0.0, 5.0)
    assert clock.delay == 10.0, "twice what the host takes to answer"


def test_a_crawl_delay_means_one_request_at_a_time() -> None:
    clock = Clock(NORMAL)
    assert clock.at_once == 2
    clock.crawl_delay = 0.5
    assert clock.at_once == 1


def test_a_failing_host_is_asked_half_as_often_each_time_and_recovers() -> None:
    clock = Clock(NORMAL)
    delays = []
    for now in range(10):
        clock.failed(now, now)
        delays.append(clock.delay)
    assert delays[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(delays) == 60.0
    for _ in range(20):
        clock.answered(0.0, 0.1)
    assert clock.delay == 1.0
    assert clock.at_once == 2


def test_requests_that_fail_together_count_once() -> None:
    clock = Clock(NORMAL)
    for moment in (10.0, 10.1, 10.2):
        clock.failed(moment, 5.0)
    assert (clock.failures, clock.delay) == (1, 1.0)
    clock.failed(12.0, 11.0)
    assert (clock.failures, clock.delay) == (2, 2.0)


def test_retry_after_is_obeyed_to_the_second() -> None:
    clock = Clock(NORMAL)
    clock.refused(100.0, 99.0, 42.0, 300.0)
    assert clock.next_at == 142.0
    clock.refused(200.0, 199.0, 7200.0, 300.0)
    assert clock.next_at == 7400.0
    assert clock.waited == clock.waited_in_all == 42.0 + 7200.0
    clock.answered(8000.0, 0.1)
    assert (clock.waited, clock.waited_in_all) == (0.0, 7242.0)


def test_our_own_pause_has_a_limit() -> None:
    clock = Clock(NORMAL)
    for _ in range(12):
        now = clock.next_at
        clock.refused(now, now, None, 300.0)
        assert clock.next_at - now <= 300.0


def test_the_delay_of_robots_txt_counts_from_the_arrival_at_every_speed() -> None:
    clock = Clock(PACES["max"])
    clock.crawl_delay = 2.0
    clock.started(100.0)
    clock.answered(100.5, 0.5, 0.3, 0.4)
    assert clock.next_at >= 102.4


def test_one_slow_page_slows_nothing_down() -> None:
    clock = Clock(NORMAL)
    for _ in range(3):
        clock.answered(0.0, 0.1)
    clock.answered(100.0, 30.0)
    assert clock.delay == 1.0
    clock.started(100.0)
    assert clock.next_at == 101.0


def test_a_host_that_is_slow_as_a_rule_is_asked_slowly() -> None:
    clock = Clock(NORMAL)
    for _ in range(20):
        clock.answered(0.0, 0.1)
    for _ in range(5):
        clock.answered(0.0, 4.0)
    assert clock.delay == 8.0
    for _ in range(5):
        clock.answered(0.0, 0.1)
    assert clock.delay == 1.0


def test_a_few_errors_of_a_good_host_slow_nothing_down() -> None:
    clock = Clock(NORMAL)
    for number in range(1, 40):
        if number % 9 in (3, 5, 8) and number > 9:
            clock.failed(number, number)
            assert clock.failures == 1
        else:
            clock.answered(number, 0.1)
        assert (clock.delay, clock.at_once) == (1.0, 2)


def test_many_errors_of_a_good_host_slow_it_down() -> None:
    clock = Clock(NORMAL)
    for number in range(20):
        clock.answered(number, 0.1)
    delays = []
    for number in range(20, 27):
        clock.failed(number, number)
        delays.append(clock.delay)
    assert delays == [1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0]


def test_refusals_without_a_time_wait_longer_each_time() -> None:
    clock = Clock(NORMAL)
    waits = []
    for _ in range(5):
        now = clock.next_at
        clock.refused(now, now, None, 3600.0)
        waits.append(clock.next_at - now)
    assert waits == sorted(waits)
    assert waits[0] >= 1.0


@given(st.lists(st.tuples(st.sampled_from(["started", "answered", "failed", "refused"]), st.floats(0, 100))))
def test_the_next_request_never_comes_sooner_than_the_delay(events: list[tuple[str, float]]) -> None:
    clock, now = Clock(NORMAL), 0.0
    for event, passed in events:
        now += passed
        before = clock.next_at
        if event == "started":
            clock.started(now)
            assert clock.next_at >= now + NORMAL.delay
        elif event == "answered":
            clock.answered(now, passed)
        elif event == "failed":
            clock.failed(now, now)
        else:
            clock.refused(now, now, passed, 3600.0)
            assert clock.next_at >= now + passed
        assert clock.next_at >= before, "the clock never goes back"


def test_hosts_of_one_address_take_turns() -> None:
    address = Address(NORMAL, 1)
    assert [address.reserve(0.0) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    address.in_flight = 4
    assert address.full


def test_fetchers_share_what_an_address_bears() -> None:
    address = Address(NORMAL, 2)
    assert address.most == 2
    assert [address.reserve(0.0) for _ in range(3)] == [0.0, 0.5, 1.0]


def test_retries_wait_longer_each_time() -> None:
    assert [retry_delay(attempt, 3.0, 100.0) for attempt in (1, 2, 3, 4)] == [3.0, 12.0, 48.0, 100.0]


def test_speeds_are_ordered() -> None:
    paces = [PACES[name] for name in ("polite", "normal", "fast", "max")]
    assert [pace.delay for pace in paces] == sorted((pace.delay for pace in paces), reverse=True)
    assert [pace.per_host for pace in paces] == sorted(pace.per_host for pace in paces)
    assert [pace.per_address for pace in paces] == sorted(pace.per_address for pace in paces)


@given(st.floats(0.0, 1e6))
def test_waits_are_counted_without_rounding(now: float) -> None:
    """Otherwise a host that asks for the longest wait is given up at some times of the day, and not at others."""
    clock = Clock(NORMAL)
    clock.refused(now, now, 3600.0, 300.0)
    assert clock.waited_in_all <= 3600.0

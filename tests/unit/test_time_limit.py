"""A time limit must not switch off a timer that was set before it: of an outer limit, or of a program that uses us."""

import signal
import threading

import pytest

from silkline.time_limit import TookTooLong, interrupted_after


def test_an_outer_limit_holds_after_an_inner_one_has_ended() -> None:
    def work() -> None:
        with interrupted_after(0.05):
            with interrupted_after(1_000):
                pass
            threading.Event().wait(200)

    with pytest.raises(TookTooLong):
        work()


@pytest.mark.parametrize(
    ("timer", "cpu"), [(signal.ITIMER_REAL, False), (signal.ITIMER_PROF, True)], ids=["real time", "CPU time"]
)
def test_a_timer_of_the_caller_goes_on(timer: int, cpu: bool) -> None:
    before = signal.setitimer(timer, 5_000, 7)
    try:
        with interrupted_after(100, cpu=cpu):
            assert signal.getitimer(timer)[0] < 200
        left, every = signal.getitimer(timer)
        assert (left > 100, round(every)) == (True, 7)
    finally:
        signal.setitimer(timer, *before)


def test_no_timer_is_left() -> None:
    before = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        with interrupted_after(100):
            pass
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)

"""When a host may get the next request. Pure: the caller passes the time.

The delay of a host is the largest of three values: the delay of the crawl, the delay in its robots.txt, and the delay
that follows from its answers. A slow host gets a longer delay. For a host that fails, the delay doubles each time. A
host that answers 429 or 503 gets no request for as long as it asks. The response time is the median of the last
answers, not the last one. So one slow page changes nothing, and neither does a single error of a host that answers most
of the time.
"""

from __future__ import annotations

from typing import Final

from silkline.crawl.plan import Pace
from silkline.model import host_wait as reasons

_REMEMBERED: Final = 9
"""Number of answers for the median. With this many, five slow answers are enough to notice that a host slows down."""
_STRAY: Final = 3
"""One of this many remembered answers may be an error before the delay of the host grows."""
_ROUNDING: Final = 0.002
"""The event loop counts in whole milliseconds, rounded down."""
_QUICK: Final = 3.0
"""A host that usually answers within so many seconds is quick."""
_QUICK_ANSWERS: Final = 10
"""For each second that an answer took longer, a host must give so many quick answers before it is quick again."""
_MOST_MISSING: Final = 1_200
"""Quick answers, as for two minutes: a host that was overloaded for an hour is quick again some minutes later."""
_TROUBLES: Final = frozenset({reasons.ERRORS, reasons.REFUSED, reasons.RETRY_AFTER, reasons.ROBOTS_UNAVAILABLE})


class Clock:
    """The pace of one host."""

    __slots__ = (
        "_asleep",
        "_debt",
        "_last",
        "_penalized_at",
        "_penalty",
        "_usual",
        "crawl_delay",
        "failures",
        "next_at",
        "pace",
        "refusals",
        "trouble",
        "waited",
        "waited_in_all",
    )

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.crawl_delay = 0.0
        self.next_at = 0.0
        self.failures = 0
        self.refusals = 0
        self.waited = 0.0
        self.waited_in_all = 0.0
        self.trouble = ""
        self._asleep = (0.0, "", 0.0)
        self._last: list[float | None] = []  # seconds of each answer, None for an error
        self._usual = 0.0
        self._debt = 0.0  # quick answers that are missing before it counts as quick
        self._penalty = 0.0
        self._penalized_at = 0.0

    @property
    def at_once(self) -> int:
        """Requests this host may have in flight."""
        return 1 if self.crawl_delay or self._penalty else self.pace.per_host

    @property
    def delay(self) -> float:
        """Seconds from one request to the next."""
        adaptive = min(self.pace.patience * self._usual, self.pace.most)
        return max(self.pace.delay, self.crawl_delay, adaptive, self._penalty)

    @property
    def usual(self) -> float:
        """The usual response time of this host in seconds, from its last answers."""
        return self._usual

    @property
    def quick(self) -> bool:
        """Whether the host is known to answer soon: it has answered, with few slow answers, and its last requests did
        not fail."""
        return 0.0 < self._usual <= _QUICK and not self.failures and not self._debt

    def started(self, now: float) -> None:
        self.next_at = max(self.next_at, now + self.delay)

    def reached(self, sent: float, connected: float, first_byte: float) -> None:
        """A request was sent at `sent`, and reached the host when the connection was made, or up to a tenth of the
        delay later. The delay counts from there, not from our decision to send it. The other values count from
        `sent`; without an answer, `first_byte` is the time until the failure."""
        delay = self.delay
        way = min(first_byte, connected + delay / 10) + _ROUNDING if delay and first_byte else 0.0
        self.next_at = max(self.next_at, sent + way + delay)

    def answered(self, now: float, seconds: float, connected: float = 0.0, first_byte: float = 0.0) -> None:
        """The host answered normally, `seconds` after the request was sent."""
        self.failures = 0
        self.refusals = 0
        self.waited = 0.0
        self._remember(seconds)
        times = sorted(each for each in self._last if each is not None)
        self._usual = times[(len(times) - 1) // 2]
        missing = self._debt + (_QUICK_ANSWERS * (seconds - _QUICK) if seconds > _QUICK else -1.0)
        self._debt = min(max(0.0, missing), _MOST_MISSING)
        self.reached(now - seconds, connected, first_byte)
        if self._penalty:
            self._penalty = self._penalty / 2 if self._penalty > 0.1 else 0.0

    def failed(self, now: float, started: float) -> None:
        """The host did not answer, or answered with a server error, to a request that was sent at `started`."""
        self._remember(None)
        if _STRAY * self._last.count(None) <= len(self._last) and not self._penalty:
            self.failures += started >= self._penalized_at
            self._penalized_at = now
        elif self._penalize(now, started):
            self.failures += 1
        self.sleep_until(now + self._penalty, reasons.ERRORS, self._penalty)

    def slow_down(self, now: float, started: float) -> None:
        """The host refused one URL, which was requested at `started`: the delay doubles, as for a failing host."""
        self.failures += self._penalize(now, started)
        self.sleep_until(now + self._penalty, reasons.ERRORS, self._penalty)

    def refused(self, now: float, started: float, wait: float | None, longest: float) -> None:
        """The host asked us to wait: for `wait` seconds. If it gave no time, the wait grows up to `longest`."""
        if self._penalize(now, started):
            self.failures += 1
            self.refusals += 1
        pause = wait if wait is not None else self._penalty * 2 ** min(self.refusals, 10)
        seconds = wait if wait is not None else min(pause, longest)
        until = now + seconds
        more = seconds if self.next_at <= now else max(0.0, until - self.next_at)  # `until - now` may round up
        self.waited += more
        self.waited_in_all += more
        self.sleep_until(until, reasons.REFUSED if wait is None else reasons.RETRY_AFTER, seconds)

    def _remember(self, seconds: float | None) -> None:
        self._last.append(seconds)
        if len(self._last) > _REMEMBERED:
            del self._last[0]

    def _penalize(self, now: float, started: float) -> bool:
        """Double the delay. Requests that were in flight together and fail together count once."""
        if started < self._penalized_at:
            return False
        self._penalized_at = now
        self._penalty = min(max(2 * self._penalty, self.pace.delay, 0.1), max(self.pace.most, self.pace.delay))
        return True

    def sleep_until(self, moment: float, why: str, seconds: float = 0.0) -> None:
        """Allow no request before `moment`, for the reason `why`; `seconds` is the figure shown with the reason."""
        if moment > self.next_at:
            self.next_at = moment
            self._asleep = (moment, why, seconds)

    def waits_for(self) -> tuple[str, str, float]:
        """What determines `next_at`: the reason, the failure before it, and the figure in seconds shown with it."""
        until, why, seconds = self._asleep
        delay = self.delay
        if until >= self.next_at:
            pass
        elif self._penalty and delay == self._penalty:
            why, seconds = reasons.ERRORS, delay
        elif self.crawl_delay and delay == self.crawl_delay:
            why, seconds = reasons.CRAWL_DELAY, delay
        elif delay == self.pace.delay:
            why, seconds = reasons.DELAY, delay
        else:
            why, seconds = reasons.SLOW_ANSWERS, self._usual
        return why, self.trouble if why in _TROUBLES else "", seconds


class Booking:
    """What this fetcher knows of the time of one host: the current part and, behind other jobs, the next one."""

    __slots__ = ("asked", "behind", "ends", "idle", "next", "paid", "starts")

    def __init__(self) -> None:
        self.starts = self.ends = 0.0
        self.next: tuple[float, float] | None = None
        self.behind = ""
        """The job whose time comes before ours."""
        self.idle = 0.0
        """For how long the host was not booked before us."""
        self.asked = False
        self.paid = False
        """The time of its address is booked, and only that of the host has passed meanwhile."""

    def covers(self, now: float) -> bool:
        if now > self.ends and self.next is not None:
            (self.starts, self.ends), self.next = self.next, None
        return self.starts <= now <= self.ends

    def take(self, starts: float, ends: float, now: float) -> None:
        """More time was booked. It extends the current part, or comes behind other jobs."""
        self.asked = False
        if starts <= self.ends:
            self.ends = max(self.ends, ends)
        elif now <= self.ends:
            self.next = (starts, ends)
        else:
            self.starts, self.ends, self.next = starts, ends, None
        self.paid = self.starts > self.ends


def retry_delay(attempt: int, base: float, cap: float) -> float:
    """Seconds before a URL is tried again after its try number `attempt`."""
    return float(min(base * 4 ** min(max(0, attempt - 1), 30), cap))

"""Why a crawl waits for a host: a reason for programs, a text for people, and the time of the next request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

CRAWL_DELAY: Final = "crawl_delay"
RETRY_AFTER: Final = "retry_after"
REFUSED: Final = "refused"
ERRORS: Final = "errors"
ROBOTS_LOADING: Final = "robots_loading"
ROBOTS_UNAVAILABLE: Final = "robots_unavailable"
ROBOTS_NO_ROOM: Final = "robots_no_room"
PAGE_RETRY: Final = "page_retry"
SLOW_ANSWERS: Final = "slow_answers"
DELAY: Final = "delay"
ADDRESS: Final = "address"
BOOKED: Final = "booked"
READING: Final = "reading"
RENDERING: Final = "rendering"
LEVEL: Final = "level"
BUSY: Final = "busy"
TURN: Final = "turn"


class Wait(NamedTuple):
    """One host of a running crawl, and why the crawl waits for it.

    `seconds` is the duration in the reason, such as a delay; `detail` is the cause, such as http_429, or the id of the
    job that fetches from the host first. `next_at` is the time of the next request in seconds since 1970, or null if an
    event decides. `seconds_left` is the time that the queued URLs need at this pace: the host with the largest value
    delays the crawl most.
    """

    host: str
    queued: int
    in_flight: int
    reason: str
    detail: str
    seconds: float
    next_at: float | None
    seconds_left: float


_WORDS: Final[Mapping[str, Callable[[Wait], str]]] = {
    CRAWL_DELAY: lambda wait: f"robots.txt asks for {_span(wait.seconds)} between pages",
    RETRY_AFTER: lambda wait: f"the server said {_said(wait)}, Retry-After {_span(wait.seconds)}",
    REFUSED: lambda wait: f"the server said {_said(wait)}, so the crawl waits {_span(wait.seconds)}",
    ERRORS: lambda wait: f"backing off after errors ({wait.detail}): {_span(wait.seconds)} between pages",
    ROBOTS_LOADING: lambda wait: "its robots.txt is being fetched",
    ROBOTS_UNAVAILABLE: lambda wait: (
        f"its robots.txt could not be fetched ({_said(wait)}), so nothing else may be fetched"
    ),
    ROBOTS_NO_ROOM: lambda wait: "its robots.txt is large, and those of other hosts use the memory until they end",
    PAGE_RETRY: lambda wait: "the remaining URLs failed before and are tried again later",
    SLOW_ANSWERS: lambda wait: f"it takes {_span(wait.seconds)} to answer, so requests are sent more slowly",
    DELAY: lambda wait: f"this crawl waits {_span(wait.seconds)} between two pages of a host",
    ADDRESS: lambda wait: "the crawl fetches from other hosts with the same address",
    BOOKED: lambda wait: (
        f"job {wait.detail} fetches from it first, jobs take turns" if wait.detail else "its time is being booked"
    ),
    READING: lambda wait: "its last pages are large and must be parsed first",
    RENDERING: lambda wait: "many of its pages wait for a browser",
    LEVEL: lambda wait: "pages closer to the start are fetched first",
    BUSY: lambda wait: f"{wait.in_flight} of its pages are being fetched, the maximum at the same time",
    TURN: lambda wait: "it is ready; the crawl is busy with other hosts",
}
REASONS: Final = frozenset(_WORDS)


def why(wait: Wait) -> str:
    """The reason as a text."""
    return _WORDS[wait.reason](wait) if wait.reason in _WORDS else wait.reason


def what_next(wait: Wait, now: datetime) -> str:
    """What happens after the wait, and when; empty if an event decides."""
    left = seconds_to(wait, now)
    if left is None:
        return ""
    return f"{event(wait)} in {_span(left)}" if left >= 0.5 else f"{event(wait)} any moment"


def event(wait: Wait) -> str:
    """What happens after the wait."""
    return "next try" if wait.reason in (ROBOTS_UNAVAILABLE, ROBOTS_NO_ROOM, PAGE_RETRY) else "next page"


def seconds_to(wait: Wait, now: datetime) -> float | None:
    return None if wait.next_at is None else wait.next_at - now.timestamp()


def in_words(wait: Wait, now: datetime) -> str:
    """For example `robots.txt asks for 5 s between pages; next page in 3 s`."""
    return "; ".join(filter(None, (why(wait), what_next(wait, now))))


def moment(wait: Wait) -> datetime | None:
    return None if wait.next_at is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=wait.next_at)


def waits_in(live: Mapping[str, Any]) -> list[Wait]:
    """The waits that a crawl last reported; entries in the format of another version are ignored."""
    said = live.get("waits")
    found = [_read(each) for each in said] if isinstance(said, list) else []
    return [wait for wait in found if wait is not None]


def _read(said: Any) -> Wait | None:
    try:
        wait = Wait(**said)
        numbers = (wait.queued, wait.in_flight, wait.seconds, wait.next_at or 0, wait.seconds_left)
    except TypeError:
        return None
    texts = (wait.host, wait.reason, wait.detail)
    right = all(isinstance(each, str) for each in texts) and all(isinstance(each, int | float) for each in numbers)
    return wait if right else None


def _said(wait: Wait) -> str:
    return wait.detail.removeprefix("http_") or "no"


def _span(seconds: float) -> str:
    """A duration, such as `0.5 s`, `42 s`, `5 min`."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f}".removesuffix(".0") + " s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"

"""Decides what to do with an answer: read it, render it, follow it, retry later, or settle it with a reason. Pure.

Every kind that fetches uses `decide`; answers.py carries out the decision. `note_for` says what the clock of the host
is told first. The clock counts failures, and `decide` needs these counts to give up a host.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final, NamedTuple

from silkline.crawl.frontier import HostQueue
from silkline.crawl.plan import Rendering, Tuning
from silkline.crawl.politeness import Clock, retry_delay
from silkline.crawl.registrable_domain import domain_of
from silkline.crawl.sitemap_limits import SITEMAP_VIAS
from silkline.crawl.url_queue import FrontierUrl, is_foreign
from silkline.model import fetched as reasons
from silkline.model.fetched import Fetched, is_temporary, retry_after
from silkline.model.ledger import FAILED
from silkline.model.url import canonical, host_of
from silkline.parse.sniff import sniff

_MOST_PUT_OFF: Final = 8
_REFUSALS: Final = frozenset({"http_429", "http_503"})
_MISSING: Final = frozenset({"http_404", "http_410"})
_OUR_OWN: Final = frozenset({reasons.MEMORY_FULL, reasons.ADDRESS_BUSY, reasons.RENDER_BUSY})


# What the clock of a host is told.


class Answered(NamedTuple):
    """The host answered normally."""


class Unwell(NamedTuple):
    """The host did not answer, or answered with a server error."""

    reason: str


class HostRefused(NamedTuple):
    """The host asked us to wait (Retry-After): for `wait` seconds, if it says for how long."""

    reason: str
    wait: float | None


class PathRefused(NamedTuple):
    """The same answer, but for a URL that only other hosts link to: it counts for this URL, and slows the host down."""

    reason: str
    wait: float | None


Note = Answered | Unwell | HostRefused | PathRefused
ANSWERED: Final = Answered()


class Troubles(NamedTuple):
    """What the clock of a host has counted against it, including this answer."""

    failures: int = 0
    refusals: int = 0
    waited: float = 0.0
    waited_in_all: float = 0.0


NO_TROUBLES: Final = Troubles()


# What to do with a URL.


class Read(NamedTuple):
    """There is a body to read."""


class Render(NamedTuple):
    """There is a page whose scripts must run before it is read."""


class Follow(NamedTuple):
    """The answer redirects to this URL."""

    target: str


class TryAgain(NamedTuple):
    """A temporary failure: request the same URL again, after `wait` seconds or later.

    `put_off` counts the tries that failed for a reason of our own. They do not count as `attempts`.
    """

    reason: str
    attempts: int
    wait: float
    put_off: int = 0


class Settle(NamedTuple):
    """The URL is finished, without a page."""

    state: str
    reason: str
    detail: str | None


class Forget(NamedTuple):
    """We cancelled the request ourselves: the URL stays queued in the ledger."""


Action = Read | Render | Follow | TryAgain | Settle | Forget
READ: Final = Read()
RENDER: Final = Render()
FORGET: Final = Forget()


class AnswerDecision(NamedTuple):
    """What to do with the URL. `give_up` is the reason to give up its whole host, if there is one."""

    action: Action
    give_up: str = ""


_READ: Final = AnswerDecision(READ)
_RENDER: Final = AnswerDecision(RENDER)
_FORGET: Final = AnswerDecision(FORGET)


def note_for(fetched: Fetched, time_of_day: float, *, path_only: bool = False) -> Note | None:
    """What the clock of the host is told about an answer. None: nothing. `path_only` as in `is_for_path`."""
    reason = fetched.reason
    if reason in (reasons.CLOSED, reasons.ADDRESS_BUSY):
        return None
    if reason is None or not is_temporary(reason) or reason == reasons.MEMORY_FULL:
        return ANSWERED
    if reason in _REFUSALS:
        return (PathRefused if path_only else HostRefused)(reason, retry_after(fetched, time_of_day))
    return Unwell(reason)


def is_missing(fetched: Fetched) -> bool:
    """Whether the host answered that it has no such page. Its clock is not told: this is a normal answer."""
    return fetched.reason in _MISSING


def is_for_path(host: HostQueue, entry: FrontierUrl, most_failures: int) -> bool:
    """Whether a request to wait is only for this URL. Otherwise a link to a path that is always refused would stop the
    whole host: other hosts choose these links. The host's own URLs show whether the host itself is overloaded.

    Without own URLs, or after many failures without a normal answer, it is for the host.
    """
    if not is_foreign(entry) or host.clock.failures >= most_failures:
        return False
    return host.answers_own or host.queue.has_own or host.in_flight > 1


def tell(clock: Clock, note: Note, fetched: Fetched, started: float, now: float, longest: float) -> None:
    """Tell the clock about an answer. Not pure, and the only place that does this."""
    took = fetched.timings
    match note:
        case Answered():
            clock.answered(now, took.total, took.connected, took.first_byte)
        case HostRefused(reason, wait):
            clock.trouble = reason
            clock.refused(now, started, wait, longest)
            clock.reached(now - took.total, took.connected, took.first_byte or took.total)
        case PathRefused(reason, _):
            clock.trouble = reason
            clock.slow_down(now, started)
            clock.reached(now - took.total, took.connected, took.first_byte or took.total)
        case Unwell(reason):
            clock.trouble = reason
            clock.failed(now, started)
            clock.reached(now - took.total, took.connected, took.first_byte or took.total)


def decide(
    entry: FrontierUrl,
    fetched: Fetched,
    tuning: Tuning,
    *,
    rendering: Rendering | None = None,
    note: Note | None = None,
    troubles: Troubles = NO_TROUBLES,
    given_up: bool = False,
) -> AnswerDecision:
    """Decide what to do with the answer for a URL.

    `note` is what the host's clock was told about the answer, and `troubles` are the counts of that clock after it.
    `given_up`: the host was given up before. A rendered page is decided again, without a note.
    """
    if fetched.reason == reasons.CLOSED:
        return _FORGET
    if fetched.redirect:
        return AnswerDecision(_redirected(entry, fetched, tuning))
    if fetched.ok:
        return _RENDER if _is_shown_first(entry, fetched, rendering) else _READ
    give_up = _why_given_up(note, troubles, tuning)
    return AnswerDecision(_failed(entry, fetched, tuning, note, given_up=given_up or bool(give_up)), give_up)


def needs_rendering(fetched: Fetched, *, needs_scripts: bool, rendering: Rendering | None) -> bool:
    """Whether a page that was read must be rendered and read again."""
    return needs_scripts and rendering is not None and fetched.rendered is None


def _is_shown_first(entry: FrontierUrl, fetched: Fetched, rendering: Rendering | None) -> bool:
    """Whether the page must be rendered before it is read."""
    if rendering is None or rendering.auto or fetched.rendered is not None or entry.via in SITEMAP_VIAS:
        return False
    return sniff(fetched.body, fetched.content_type, fetched.charset) == "html"


def _redirected(entry: FrontierUrl, fetched: Fetched, tuning: Tuning) -> Follow | Settle:
    target = canonical(fetched.location or "")
    if target is None:
        return Settle(FAILED, reasons.BAD_REDIRECT, fetched.location)
    before = entry.chain.split()
    if target == entry.url or target in before:
        return Settle(FAILED, reasons.REDIRECT_LOOP, target)
    home = _domain(entry.url)
    own = sum(1 for _ in takewhile(lambda url: _domain(url) == home, reversed(before)))
    # A host that redirects to another domain must not use up the redirects of that domain.
    if (own if _domain(target) == home else len(before)) >= tuning.max_redirects:
        return Settle(FAILED, reasons.TOO_MANY_REDIRECTS, target)
    return Follow(target)


def _domain(url: str) -> str:
    """The domain of a URL. The chain of a sitemap has its nesting depth instead of URLs: that counts as its own."""
    return domain_of(host_of(url)) if "://" in url else ""


def _why_given_up(note: Note | None, troubles: Troubles, tuning: Tuning) -> str:
    """Why the host is given up, or an empty string: it failed too often in a row, or asked us to wait too long."""
    if isinstance(note, HostRefused):
        again = troubles.refusals > 1 and troubles.waited > tuning.most_waited
        too_long = troubles.waited_in_all > 3 * tuning.most_waited
        return note.reason if again or too_long or troubles.refusals >= tuning.give_up_after else ""
    if isinstance(note, Unwell) and not note.reason.startswith("http_") and troubles.failures >= tuning.give_up_after:
        return note.reason
    return ""


def _failed(
    entry: FrontierUrl, fetched: Fetched, tuning: Tuning, note: Note | None, *, given_up: bool
) -> TryAgain | Settle:
    reason = fetched.reason or reasons.BAD_RESPONSE
    attempts, put_off = entry.attempts + 1, entry.put_off
    if reason in _OUR_OWN and put_off < _MOST_PUT_OFF:
        attempts, put_off = entry.attempts, put_off + 1
    wait = (note.wait or 0.0) if isinstance(note, HostRefused | PathRefused) else 0.0
    for_path = isinstance(note, PathRefused)
    too_long = (tuning.fail_long_waits or for_path) and wait > tuning.longest_wait
    if is_temporary(reason) and attempts < tuning.tries and not given_up and not too_long:
        later = retry_delay(attempts + put_off, tuning.retry_base, tuning.retry_cap)
        return TryAgain(reason, attempts, max(later, wait) if for_path else later, put_off)
    return Settle(
        FAILED, reason, f"the server asks to be left alone for {wait:g} s" if wait else (fetched.detail or None)
    )

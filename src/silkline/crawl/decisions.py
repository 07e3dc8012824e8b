"""What becomes of an answer: read it, render it, follow it, try again later, or settle it with a reason. Pure.

Every kind that fetches uses `decide`; answers.py carries out the decision. `note_for` says what the clock of the host
is told first. The clock counts failures, and `decide` needs these counts to give up a host.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from silkline.crawl.frontier import FrontierUrl
from silkline.crawl.plan import Rendering, Tuning
from silkline.crawl.politeness import Clock, retry_delay
from silkline.crawl.sitemap_limits import SITEMAP_VIAS
from silkline.model import fetched as reasons
from silkline.model.fetched import Fetched, is_temporary, retry_after
from silkline.model.ledger import FAILED
from silkline.model.url import canonical
from silkline.parse.sniff import sniff

_MOST_PUT_OFF: Final = 8
_REFUSALS: Final = frozenset({"http_429", "http_503"})


# What the clock of a host is told.


class Answered(NamedTuple):
    """The host gave an answer that says nothing against asking on."""


class Unwell(NamedTuple):
    """The host did not answer, or with an error of its own."""

    reason: str


class Refused(NamedTuple):
    """The host asks to be left alone: for `wait` seconds, if it says for how long."""

    reason: str
    wait: float | None


Note = Answered | Unwell | Refused
ANSWERED: Final = Answered()


class Troubles(NamedTuple):
    """What the clock of a host has counted against it, including this answer."""

    failures: int = 0
    refusals: int = 0
    waited: float = 0.0
    waited_in_all: float = 0.0


NO_TROUBLES: Final = Troubles()


# What is done with a URL.


class Read(NamedTuple):
    """There is a body to read."""


class Render(NamedTuple):
    """There is a page whose scripts must run before it is read."""


class Follow(NamedTuple):
    """The answer points at this URL."""

    target: str


class TryAgain(NamedTuple):
    """A failure that may pass: the same URL again, after so many seconds at least.

    `put_off` counts the tries whose failure was our own, so that they are none of the `attempts`.
    """

    reason: str
    attempts: int
    wait: float
    put_off: int = 0


class Settle(NamedTuple):
    """The URL has its end, without a page."""

    state: str
    reason: str
    detail: str | None


class Forget(NamedTuple):
    """The request was broken off by ourselves: the URL stays queued in the ledger."""


Action = Read | Render | Follow | TryAgain | Settle | Forget
READ: Final = Read()
RENDER: Final = Render()
FORGET: Final = Forget()


class Decision(NamedTuple):
    """What is done with the URL, and why its whole host is given up, if it is."""

    action: Action
    give_up: str = ""


_READ: Final = Decision(READ)
_RENDER: Final = Decision(RENDER)
_FORGET: Final = Decision(FORGET)


def note_for(fetched: Fetched, time_of_day: float) -> Note | None:
    """What the clock of the host is told of an answer; None: nothing."""
    reason = fetched.reason
    if reason == reasons.CLOSED:
        return None
    if reason is None or not is_temporary(reason) or reason == reasons.MEMORY_FULL:
        return ANSWERED
    if reason in _REFUSALS:
        return Refused(reason, retry_after(fetched, time_of_day))
    return Unwell(reason)


def tell(clock: Clock, note: Note, fetched: Fetched, started: float, now: float, longest: float) -> None:
    """Pass a note on. Not pure, and the only place where a clock hears of answers."""
    match note:
        case Answered():
            clock.answered(now, fetched.timings.total)
        case Refused(reason, wait):
            clock.trouble = reason
            clock.refused(now, started, wait, longest)
        case Unwell(reason):
            clock.trouble = reason
            clock.failed(now, started)


def decide(
    entry: FrontierUrl,
    fetched: Fetched,
    tuning: Tuning,
    *,
    rendering: Rendering | None = None,
    note: Note | None = None,
    troubles: Troubles = NO_TROUBLES,
    given_up: bool = False,
) -> Decision:
    """What becomes of the answer for a URL.

    `note` is what the host's clock has been told of it, and `troubles` what that clock says now; `given_up`: the host
    has been given up before. A page that was in a browser is decided again, without a note.
    """
    if fetched.reason == reasons.CLOSED:
        return _FORGET
    if fetched.redirect:
        return Decision(_redirected(entry, fetched, tuning))
    if fetched.ok:
        return _RENDER if _is_shown_first(entry, fetched, rendering) else _READ
    give_up = _why_given_up(note, troubles, tuning)
    return Decision(_failed(entry, fetched, tuning, note, given_up=given_up or bool(give_up)), give_up)


def needs_rendering(fetched: Fetched, *, needs_scripts: bool, rendering: Rendering | None) -> bool:
    """Whether a page that was read goes through a browser, and is read again."""
    return needs_scripts and rendering is not None and fetched.rendered is None


def _is_shown_first(entry: FrontierUrl, fetched: Fetched, rendering: Rendering | None) -> bool:
    """Whether the page goes through a browser before anybody reads it."""
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
    if len(before) >= tuning.max_redirects:
        return Settle(FAILED, reasons.TOO_MANY_REDIRECTS, target)
    return Follow(target)


def _why_given_up(note: Note | None, troubles: Troubles, tuning: Tuning) -> str:
    """The host has failed too often in a row, or has asked too long to be left alone: why, or an empty string."""
    if isinstance(note, Refused):
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
    if reason == reasons.MEMORY_FULL and put_off < _MOST_PUT_OFF:
        attempts, put_off = entry.attempts, put_off + 1
    wait = (note.wait or 0.0) if isinstance(note, Refused) else 0.0
    too_long = tuning.fail_long_waits and wait > tuning.longest_wait
    if is_temporary(reason) and attempts < tuning.tries and not given_up and not too_long:
        later = retry_delay(attempts + put_off, tuning.retry_base, tuning.retry_cap)
        return TryAgain(reason, attempts, later, put_off)
    return Settle(
        FAILED, reason, f"the server asks to be left alone for {wait:g} s" if wait else (fetched.detail or None)
    )

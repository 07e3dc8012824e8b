"""Carries out the decision about each answer (see decisions.py).

Holds the bodies that are being read, and the pages that are in a browser.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from silkline.crawl.decisions import (
    NO_TROUBLES,
    Answered,
    Follow,
    HostRefused,
    Note,
    Read,
    Render,
    Settle,
    Troubles,
    TryAgain,
    decide,
    is_for_path,
    is_missing,
    needs_rendering,
    note_for,
    tell,
)
from silkline.crawl.endings import Endings
from silkline.crawl.fetcher_gauges import FetcherGauges
from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.messages import PageOutcome
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import Plan
from silkline.crawl.purpose import LATER, LATER_SECONDS, MORE, Portions, Purpose
from silkline.crawl.reading import LONGEST_DETAIL, PARSE_FAILED, READ_LATER, Reading
from silkline.crawl.render_queue import RenderQueue
from silkline.crawl.url_queue import FrontierUrl
from silkline.metrics.instruments import RETRIES, reason_label
from silkline.model.fetched import HOST_UNAVAILABLE, Fetched
from silkline.model.ledger import FAILED, QUEUED, Settled
from silkline.model.url import host_of

Done = TypeVar("Done")


def _ignore(host: HostQueue, size: int) -> None:
    """Nobody limits how much of a host waits to be read or rendered."""


def _refuse(host: HostQueue, entry: FrontierUrl, size: int) -> None:
    raise RuntimeError("nobody fetches the URL again")


class Answers:
    """`after` is called when a URL was finished outside of `take`."""

    def __init__(
        self,
        plan: Plan,
        reader: GuardedReader,
        render_queue: RenderQueue | None,
        frontier: Frontier,
        outbox: Outbox,
        endings: Endings,
        purpose: Purpose,
        gauges: FetcherGauges,
        after: Callable[[], None],
    ) -> None:
        self._tuning = plan.tuning
        self._rendering = plan.rendering
        self._reader = reader
        self.render_queue = render_queue
        self._frontier = frontier
        self._outbox = outbox
        self._endings = endings
        self._purpose = purpose
        self._gauges = gauges
        self._after = after
        self._loop = asyncio.get_running_loop()
        self._reading: dict[int, tuple[HostQueue, FrontierUrl, Fetched]] = {}
        self._elsewhere: dict[int, int] = {}
        """The sizes of the bodies that another process reads, by the ids of their URLs."""
        self._portions: deque[tuple[FrontierUrl, Portions]] = deque()
        self.on_waits: Callable[[HostQueue, int], None] = _ignore
        self.on_read: Callable[[HostQueue, int], None] = _ignore
        self.on_put_off: Callable[[HostQueue, FrontierUrl, int], None] = _refuse
        """The answer is dropped. The URL is to be fetched again when the reader has room for this size."""
        self.on_not_shown: Callable[[HostQueue, FrontierUrl, int], None] = _refuse
        """The same, when there is room before the browsers."""
        self.on_shows: Callable[[HostQueue, int], None] = _ignore
        self.on_shown: Callable[[HostQueue, int], None] = _ignore

    @property
    def under_way(self) -> int:
        """Answers that arrived and are not finished yet."""
        return len(self._reading) + len(self._portions) + self.showing

    @property
    def showing(self) -> int:
        """Pages that are in a browser, or wait for one."""
        return len(self.render_queue) if self.render_queue is not None else 0

    @property
    def full(self) -> bool:
        """More answers wait to be read, rendered or stored than memory should hold."""
        rendering_full = self.render_queue is not None and self.render_queue.stops
        return self._reader.full or rendering_full or self._purpose.full or bool(self._portions)

    @property
    def set_aside(self) -> int:
        """Answers under way that use no request slot: they are in a browser, in isolation, or wait for it."""
        return self.showing + self._reader.isolated

    def shown_urls(self, most: int) -> list[str]:
        return self.render_queue.urls(most) if self.render_queue is not None else []

    def take(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched, started: float, now: float) -> None:
        """Process the answer to a request that was sent at `started`."""
        self._outbox.wire_bytes += fetched.wire_bytes
        path_only = not fetched.ok and is_for_path(host, entry, self._tuning.give_up_after)
        note = note_for(fetched, time.time(), path_only=path_only)
        if note is not None:
            tell(host.clock, note, fetched, started, now, self._tuning.longest_wait)
            answered, refused = isinstance(note, Answered), isinstance(note, HostRefused)
            host.note(entry, answered=answered, refused=refused, missing=is_missing(fetched))
        self._act(host, entry, fetched, note, now)

    def cut_off(self) -> None:
        """Drop the answers that are not finished. Their URLs stay queued in the ledger."""
        self._reading.clear()
        self._elsewhere.clear()
        self._portions.clear()
        if self.render_queue is not None:
            self.render_queue.cut_off()

    def close_screen(self) -> None:
        if self.render_queue is not None:
            self.render_queue.close()

    def _act(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched, note: Note | None, now: float) -> None:
        if fetched.ok:
            troubles, given_up = NO_TROUBLES, False  # only failures use these values
        else:
            clock = host.clock
            troubles = Troubles(clock.failures, clock.refusals, clock.waited, clock.waited_in_all)
            given_up = host.name in self._endings.given_up
        decided = self._survive(
            entry,
            partial(
                decide,
                entry,
                fetched,
                self._tuning,
                rendering=self._rendering,
                note=note,
                troubles=troubles,
                given_up=given_up,
            ),
        )
        if decided is None:
            return
        action, give_up = decided
        if give_up:
            self._endings.give_up(host, give_up, now)
        match action:
            case Read():
                self._read(host, entry, fetched)
            case Render():
                self._show(host, entry, fetched)
            case Follow(target):
                self._follow(entry, fetched, target, now)
            case TryAgain(reason, attempts, wait, put_off):
                status = fetched.status or None
                RETRIES.add(1, reason_label(reason))
                self._outbox.settle(Settled(entry.id, QUEUED, reason, None, attempts, status), entry.depth)
                again = entry._replace(attempts=attempts, put_off=put_off)
                self._frontier.retry(host.name, again, max(now + wait, host.clock.next_at))
            case Settle(state, reason, detail):
                self._endings.end(entry, state, reason, detail, fetched=fetched)

    def _follow(self, entry: FrontierUrl, fetched: Fetched, target: str, now: float) -> None:
        followed = self._survive(entry, partial(self._purpose.follow, entry, fetched, target))
        if isinstance(followed, FrontierUrl):
            self._frontier.put_back(host_of(followed.url), followed, now)
        elif followed is not None:
            self._outbox.page(followed)

    # Reading.

    def _read(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched) -> None:
        body = self._survive(entry, partial(self._purpose.body, host.name, entry, fetched))
        if body is None:
            return
        self._reading[entry.id] = (host, entry, fetched)
        self._reader.read(body, self._was_read, may_wait=True)
        if entry.id in self._reading:
            self._elsewhere[entry.id] = len(fetched.body)
            self.on_waits(host, len(fetched.body))

    def _was_read(self, reading: Reading) -> None:
        known = self._reading.pop(reading.id, None)
        if known is None:  # the reading arrived after the time limit of the drain
            return
        host, entry, fetched = known
        if reading.id in self._elsewhere:
            self.on_read(host, self._elsewhere.pop(reading.id))
        if reading.reason == READ_LATER:
            size = max(len(fetched.body), len((fetched.rendered or fetched).body))
            self._put_off(host, entry, size, self.on_put_off)
        elif needs_rendering(fetched, needs_scripts=reading.needs_scripts, rendering=self._rendering):
            self._show(host, entry, fetched)
        else:
            ended = self._survive(entry, partial(self._purpose.read, host.name, entry, fetched, reading))
            if isinstance(ended, PageOutcome):
                self._end(ended)
            elif ended is not None:
                self._portions.append((entry, ended))
                self._make_portions()
        self._after()

    def _put_off(
        self, host: HostQueue, entry: FrontierUrl, size: int, put_off: Callable[[HostQueue, FrontierUrl, int], None]
    ) -> None:
        given_up = self._endings.given_up.get(host.name)
        if given_up is None:
            put_off(host, entry, size)
        else:  # it would wait for as long as the host asked for
            self._endings.end(entry, FAILED, HOST_UNAVAILABLE, given_up)

    def _end(self, ended: PageOutcome) -> None:
        self._outbox.page(ended)
        self._gauges.page()

    def go_on(self) -> None:
        """Results were stored, so there may be room for those of readings that are used in portions."""
        if self._portions:
            self._make_portions()
            self._after()

    def _make_portions(self) -> None:
        while self._portions and not self._purpose.full:
            entry, portions = self._portions[0]
            made = self._survive(entry, partial(next, portions))
            if isinstance(made, PageOutcome):
                self._end(made)
            elif made == LATER:
                self._frontier.retry(host_of(entry.url), entry, self._loop.time() + LATER_SECONDS)
            if made != MORE:
                self._portions.popleft()

    def _survive(self, entry: FrontierUrl, work: Callable[[], Done]) -> Done | None:
        """Do a part of the work on an answer. If this page makes it fail, only the page fails, not the attempt.

        A full disk and a lack of memory are not the fault of the page.
        """
        try:
            return work()
        except (OSError, MemoryError):
            raise
        except Exception as error:
            self._endings.end(entry, FAILED, PARSE_FAILED, f"{type(error).__name__}: {error}"[:LONGEST_DETAIL])
            return None

    # Rendering.

    def _show(self, host: HostQueue, entry: FrontierUrl, fetched: Fetched) -> None:
        if self.render_queue is None:
            raise RuntimeError("a page must be rendered, but the plan has no browser")
        size = len(fetched.body)
        self.on_shows(host, size)
        shown, not_shown = (partial(done, host, entry, size) for done in (self._shown, self._not_shown))
        self.render_queue.show(entry, fetched, shown, not_shown)

    def _not_shown(self, host: HostQueue, entry: FrontierUrl, size: int, held: int) -> None:
        """There is no room for the page before the browsers, where it needs room for `held` bytes."""
        self.on_shown(host, size)
        self._put_off(host, entry, held, self.on_not_shown)

    def _shown(self, host: HostQueue, entry: FrontierUrl, size: int, fetched: Fetched) -> None:
        """The page was rendered. The host's clock does not count this."""
        self.on_shown(host, size)
        if fetched.rendered is not None:
            self._outbox.wire_bytes += fetched.rendered.wire_bytes
        self._act(host, entry, fetched, None, self._loop.time())
        self._after()

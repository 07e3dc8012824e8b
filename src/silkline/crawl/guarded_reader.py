"""Decides where an input is read: here, in a parser, or in isolation, if it looks risky or its host is suspect or slow.

Every input read in this process is marked first (reading_marks.py), including links that are checked. There is one for
each fetcher, and one for each job that fetches pages. The test for "risky" costs well below a microsecond.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec

from silkline.crawl.extraction import costly_xpaths
from silkline.crawl.isolated_reader import NO_ROOM, IsolatedReader, NoRoom, ReaderDied
from silkline.crawl.parser import ParserPool
from silkline.crawl.plan import Plan
from silkline.crawl.reader_process import ReadPage, ReadRobots
from silkline.crawl.reading import READ_ALONE, READ_LATER, SLOW, Body, OnReading, PageReader, Reading, timed_reading
from silkline.crawl.reading_memory import ReadingMemory
from silkline.crawl.reading_turns import Sender, sender_of
from silkline.crawl.slow_senders import SlowSenders
from silkline.crawl.suspects import Suspects
from silkline.fetch import robots
from silkline.fetch.robots import Robots
from silkline.metrics.instruments import PARSE_SECONDS
from silkline.model.fetched import READER_DIED, Fetched
from silkline.model.url import host_of
from silkline.reading_marks import LEADER, LINKS, PAGE, ROBOTS, RULES, SITEMAP, ReadingMarks

LARGE_BODY: Final = 1 << 20
LARGE_SITEMAP: Final = 128 << 10
LARGE_ROBOTS: Final = 64 << 10
SMALL_BODY: Final = 64 << 10
"""A body this small cannot do much harm, whatever its compression."""
MOST_INFLATED: Final = 32
"""HTML shrinks to a fifth, rarely to a twentieth."""
ORDINARY_CHARSETS: Final = frozenset(
    {
        *("", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "iso-8859-15", "iso-8859-2"),
        *("windows-1250", "windows-1251", "windows-1252", "windows-1254", "koi8-r"),
        *("shift_jis", "euc-jp", "gbk", "gb2312", "gb18030", "big5", "euc-kr"),
    }
)
Answer = TypeVar("Answer")
_GIVEN_UP: Final = "not read: two processes died while reading it"


class GuardedReader:
    """Implements `Reader`. Must be created inside an event loop, by the process that reads.

    `pool`: parsers read the ordinary pages. `isolate_all`: no process watches this one, so it reads nothing itself.
    """

    def __init__(
        self,
        plan: Plan,
        marks: ReadingMarks,
        slot: int = LEADER,
        *,
        pool: ParserPool | None = None,
        suspects: Suspects | None = None,
        isolate_all: bool = False,
        owns_marks: bool = False,
    ) -> None:
        self._owned_marks = marks if owns_marks else None
        self._pages = PageReader(plan, careful=True)
        self._costly_xpaths = bool(costly_xpaths(plan))
        self._extracts = plan.extracts
        self._slot = marks.slot(slot)
        self._memory = ReadingMemory(plan.tuning.read_memory)
        self._pool = pool
        if pool is not None:
            pool.on_blamed = lambda body, on_done: self._isolate(body, on_done, blamed=True)
            pool.sender_of = self._sender
        self._isolated = IsolatedReader(plan, marks, slot + 1, here=isolate_all)
        self.address_of: Callable[[str], str] = lambda host: ""
        """The address of a host, so that hosts with one address share its turn."""
        self._slow = SlowSenders(self._sender)
        self.suspects = suspects or Suspects()
        if isolate_all:
            self.suspects.everything = True

    @property
    def full(self) -> bool:
        """More pages wait for parsers than memory should hold. Inputs that need isolation never stop the others."""
        return self._pool is not None and self._pool.full

    @property
    def isolated(self) -> int:
        """Inputs in isolation or before it that use no request slot. If everything is read there, inputs use slots: no
        page would come past them."""
        return 0 if self.suspects.everything else self._isolated.waiting

    @property
    def room(self) -> int:
        """Bytes that may still come to be read in isolation."""
        return self._isolated.room

    @property
    def at_parsers(self) -> int:
        """Pages that wait for a parser, or are in one."""
        return len(self._pool) if self._pool is not None else 0

    def place_of(self, host: str) -> float:
        """When a further input of this host would be read in isolation. Small is soon."""
        return self._isolated.place(host, self.address_of(host))

    def prepare(self) -> None:
        """Start the processes for isolated reading, before this process gives up the right to start any."""
        self._isolated.prepare()

    def close(self) -> None:
        self._isolated.close()
        self._memory.close()
        if self._owned_marks is not None:
            self._owned_marks.close()
            self._owned_marks = None

    # Pages and sitemaps.

    def read(self, body: Body, on_done: OnReading, *, may_wait: bool = False) -> None:
        """`may_wait`: if too many bytes wait to be read in isolation, the reason of the reading is `READ_LATER`."""
        if (self.suspects and self._suspect(body.url)) or _risky(body) or self._is_slow(body):
            self._isolate(body, on_done, may_wait=may_wait)
        elif self._pool is not None:
            after_waiting = partial(self._isolate_after_waiting, body, on_done, may_wait)
            self._pool.read(body, partial(self._noted, body, on_done, may_wait), after_waiting)
        else:
            self._read_here(body, on_done, may_wait)

    def _read_here(self, body: Body, on_done: OnReading, may_wait: bool) -> None:
        slot = self._slot
        slot.begin(SITEMAP if body.sitemap else PAGE, body.url)
        try:
            reading = self._within_memory(lambda: timed_reading(self._pages, body))
            if reading is not None and reading.reason != READ_ALONE:
                self._slow.note(body.url, len(body.body), reading.seconds)
                on_done(reading)
        except BaseException as error:
            self._blame(error)
            raise
        slot.end()
        if reading is None or reading.reason == READ_ALONE:
            self._isolate(body, on_done, blamed=True, may_wait=may_wait)

    def _within_memory(self, read: Callable[[], Answer]) -> Answer | None:
        """None: the input needs more memory than one reading may have."""
        self._memory.begin()
        try:
            return read()
        except MemoryError:
            return None
        finally:
            self._memory.end()

    def _is_slow(self, body: Body) -> bool:
        return bool(self._slow) and self._slow.includes(body.url, len(body.body))

    def _isolate_after_waiting(self, body: Body, on_done: OnReading, may_wait: bool) -> bool:
        """A page waited for a parser. Isolate it if its sender is known as slow or suspect by now."""
        if (self.suspects and self._suspect(body.url)) or self._is_slow(body):
            self._isolate(body, on_done, may_wait=may_wait)
            return True
        return False

    async def reading_of(self, body: Body) -> Reading:
        """The same, for a caller that waits for the reading."""
        done: asyncio.Future[Reading] = asyncio.get_running_loop().create_future()
        self.read(body, done.set_result)
        return await done

    def _isolate(self, body: Body, on_done: OnReading, *, blamed: bool = False, may_wait: bool = False) -> None:
        suspects = self.suspects
        if suspects.hopeless(body.url) and not body.bare:
            if not self._extracts:
                on_done(Reading(body.id, READER_DIED, _GIVEN_UP))
                return
            body = _bare(body)

        began = time.perf_counter()

        def answered(answer: Reading | ReaderDied | NoRoom) -> None:
            if answer is NO_ROOM:
                on_done(Reading(body.id, READ_LATER))
                return
            PARSE_SECONDS.observe(time.perf_counter() - began, "reader")
            if not _risky(body):  # large files and PDFs are always read there: they say nothing about the other pages
                self._slow.note(body.url, len(body.body), SLOW if isinstance(answer, ReaderDied) else answer.seconds)
            if isinstance(answer, ReaderDied) and self._extracts and not body.bare:
                self._isolate(_bare(body), on_done, blamed=True)
            elif isinstance(answer, ReaderDied):
                on_done(Reading(body.id, READER_DIED, answer.why))
            else:
                self._judge(body, on_done, answer)

        # A page that is too much for XPaths gets one try with them. The one without comes after those of others.
        one_try = self._costly_xpaths and not body.bare
        host, blamed = host_of(body.url), blamed or one_try or suspects.blamed(body.url)
        self._isolated.submit(
            ReadPage(body),
            len(body.body),
            host,
            answered,
            address=self.address_of(host),
            blamed=blamed,
            may_wait=may_wait,
        )

    def _noted(self, body: Body, on_done: OnReading, may_wait: bool, reading: Reading) -> None:
        """A parser has read the page."""
        if reading.reason == READ_ALONE:
            self._isolate(body, on_done, blamed=True, may_wait=may_wait)
            return
        self._slow.note(body.url, len(body.body), reading.seconds)
        self._judge(body, on_done, reading)

    def _judge(self, body: Body, on_done: OnReading, reading: Reading) -> None:
        """The page was read in another process; its reading is used here."""
        self._slot.begin(LINKS, body.url)
        try:
            on_done(reading)
        except BaseException as error:
            self._blame(error)
            raise
        self._slot.end()

    def _blame(self, error: BaseException) -> None:
        """The input broke this process, unless the error comes from the machine: a full disk is not its fault."""
        if isinstance(error, OSError):
            self._slot.end()
        else:
            self._slot.keep()

    def _suspect(self, url: str) -> bool:
        return self.suspects.includes(host_of(url))

    def _sender(self, host: str) -> Sender:
        return sender_of(host, self.address_of(host))

    # robots.txt.

    async def robots(self, answer: Fetched, origin: str, now: float, product: str) -> Robots:
        """The rules in the robots.txt answer of an origin. If its readers die, nothing may be fetched."""
        if not answer.ok:
            return robots.decide(answer, now, product)
        url, body = f"{origin}/robots.txt", answer.body
        if self.suspects.hopeless(origin):
            return _no_rules(now)
        blamed = self.suspects.blamed(origin)
        if len(body) <= LARGE_ROBOTS and not self._suspect(url):
            found = self._marked(ROBOTS, url, lambda: self._within_memory(lambda: robots.decide(answer, now, product)))
            if found is not None:
                return found
            blamed = True
        host = host_of(url)
        task = ReadRobots(url, body, now, product)
        isolated: Robots | ReaderDied = await self._isolated.read(
            task, len(body), host, address=self.address_of(host), blamed=blamed
        )
        return _no_rules(now) if isinstance(isolated, ReaderDied) else _shared(isolated)

    def refusal(self, rules: Robots, url: str) -> str | None:
        """Why the rules forbid a URL; None if they allow it. Marked, because patterns and URL come from the web."""
        slot = self._slot
        slot.begin(RULES, url)
        why = rules.refusal(url)
        slot.end()
        return why

    def _marked(self, kind: int, url: str, read: Callable[[], Answer]) -> Answer:
        self._slot.begin(kind, url)
        try:
            found = read()
        except BaseException as error:
            self._blame(error)
            raise
        self._slot.end()
        return found


def _risky(body: Body) -> bool:
    """Whether an input may kill a process: it is large, highly compressed, a PDF, or in an unusual charset."""
    size = len(body.body)
    if size > SMALL_BODY:
        if size > LARGE_BODY or (body.sitemap and size > LARGE_SITEMAP):
            return True
        if body.wire_bytes and size > MOST_INFLATED * body.wire_bytes:
            return True
    if body.sitemap and body.body.startswith(b"\x1f\x8b"):
        return True
    return body.charset not in ORDINARY_CHARSETS or body.body.startswith(b"%PDF-")


def _bare(body: Body) -> Body:
    """The page without fields and hooks: perhaps only the selectors or the code of the user are too much."""
    return msgspec.structs.replace(body, bare=True)


def _no_rules(now: float) -> Robots:
    """RFC 9309 allows nothing while robots.txt cannot be read."""
    return Robots(robots.DISALLOW_ALL, now + robots.FRESH_FOR, reason=READER_DIED)


def _shared(rules: Robots) -> Robots:
    """Intern the group, so that hosts with equal rules share one string."""
    return msgspec.structs.replace(rules, group=sys.intern(rules.group))

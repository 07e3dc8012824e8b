"""Decides where an input is read: here, in a parser, or, if it looks risky or its host is suspect, in isolation.

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

from silkline.crawl.isolated_reader import IsolatedReader, ReaderDied
from silkline.crawl.parser import ParserPool
from silkline.crawl.plan import Plan
from silkline.crawl.reader_process import ReadPage, ReadRobots
from silkline.crawl.reading import Body, OnReading, PageReader, Reading, timed_reading
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
        self._pages = PageReader(plan)
        self._extracts = plan.extracts
        self._slot = marks.slot(slot)
        self._pool = pool
        if pool is not None:
            pool.on_blamed = lambda body, on_done: self._isolate(body, on_done, blamed=True)
        self._isolated = IsolatedReader(plan, marks, slot + 1, here=isolate_all)
        self.suspects = suspects or Suspects()
        if isolate_all:
            self.suspects.everything = True

    @property
    def full(self) -> bool:
        """More inputs wait to be read than memory should hold."""
        return self._isolated.full or (self._pool is not None and self._pool.full)

    @property
    def at_parsers(self) -> int:
        """Pages that wait for a parser, or are in one."""
        return len(self._pool) if self._pool is not None else 0

    def prepare(self) -> None:
        """Start the processes for isolated reading, before this process gives up the right to start any."""
        self._isolated.prepare()

    def close(self) -> None:
        self._isolated.close()
        if self._owned_marks is not None:
            self._owned_marks.close()
            self._owned_marks = None

    # Pages and sitemaps.

    def read(self, body: Body, on_done: OnReading) -> None:
        if (self.suspects and self._suspect(body.url)) or _risky(body):
            self._isolate(body, on_done)
        elif self._pool is not None:
            self._pool.read(body, partial(self._judge, body, on_done))
        else:
            slot = self._slot
            slot.begin(SITEMAP if body.sitemap else PAGE, body.url)
            try:
                on_done(timed_reading(self._pages, body))
            except BaseException:
                slot.keep()
                raise
            slot.end()

    async def reading_of(self, body: Body) -> Reading:
        """The same, for a caller that waits for the reading."""
        done: asyncio.Future[Reading] = asyncio.get_running_loop().create_future()
        self.read(body, done.set_result)
        return await done

    def _isolate(self, body: Body, on_done: OnReading, *, blamed: bool = False) -> None:
        suspects = self.suspects
        if suspects.hopeless(body.url) and not body.bare:
            if not self._extracts:
                on_done(Reading(body.id, READER_DIED, _GIVEN_UP))
                return
            body = _bare(body)

        began = time.perf_counter()

        def answered(answer: Reading | ReaderDied) -> None:
            PARSE_SECONDS.observe(time.perf_counter() - began, "reader")
            if isinstance(answer, ReaderDied) and self._extracts and not body.bare:
                self._isolate(_bare(body), on_done, blamed=True)
            elif isinstance(answer, ReaderDied):
                on_done(Reading(body.id, READER_DIED, answer.why))
            else:
                self._judge(body, on_done, answer)

        blamed = blamed or suspects.blamed(body.url)
        self._isolated.submit(ReadPage(body), len(body.body), host_of(body.url), answered, blamed=blamed)

    def _judge(self, body: Body, on_done: OnReading, reading: Reading) -> None:
        """The page was read in another process; its reading is used here."""
        self._slot.begin(LINKS, body.url)
        try:
            on_done(reading)
        except BaseException:
            self._slot.keep()
            raise
        self._slot.end()

    def _suspect(self, url: str) -> bool:
        return self.suspects.includes(host_of(url))

    # robots.txt.

    async def robots(self, answer: Fetched, origin: str, now: float, product: str) -> Robots:
        """The rules in the robots.txt answer of an origin. If its readers die, nothing may be fetched."""
        if not answer.ok:
            return robots.decide(answer, now, product)
        url, body = f"{origin}/robots.txt", answer.body
        if self.suspects.hopeless(origin):
            return _no_rules(now)
        if len(body) > LARGE_ROBOTS or self._suspect(url):
            task, blamed = ReadRobots(url, body, now, product), self.suspects.blamed(origin)
            found: Robots | ReaderDied = await self._isolated.read(task, len(body), host_of(url), blamed=blamed)
            return _no_rules(now) if isinstance(found, ReaderDied) else _shared(found)
        return self._marked(ROBOTS, url, lambda: robots.decide(answer, now, product))

    def allows(self, rules: Robots, url: str) -> bool:
        """Whether the rules allow a URL. Marked, because patterns and URL come from the web."""
        slot = self._slot
        slot.begin(RULES, url)
        allowed = rules.allows(url)
        slot.end()
        return allowed

    def _marked(self, kind: int, url: str, read: Callable[[], Answer]) -> Answer:
        self._slot.begin(kind, url)
        try:
            found = read()
        except BaseException:
            self._slot.keep()
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

"""Sends events to many listeners. Each watched job is polled once, however many listeners it has.

Everything runs on one event loop; only the polls run in threads. All streams of one caller share one of its turns
(`PollTurns`), so many streams delay each other and nobody else. A listener that is too slow is disconnected. It can
reconnect with its `Last-Event-ID` and then gets every event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from silkline.api.caller_limit import CallerLimit
from silkline.api.caller_turns import CallerTurns
from silkline.api.event_sources import Cursor, JobSource, OverviewSource, StreamEvent, catch_up
from silkline.api.read_turns import read_turns
from silkline.api.valid_callers import RegularCheck, StillValid
from silkline.errors import NotFound, StoreError
from silkline.model.database import Database
from silkline.model.job import Status

INTERVAL = 0.5
EAGER, EAGER_LOOKS = 0.1, 20  # a new listener often waits for an event that comes soon, such as a page
BACKLOG, BACKLOG_BYTES = 64, 1 << 20  # events that wait for one listener, and their bytes
ALIVE_EVERY = 15.0
RETRY = b"retry: 2000\n\n"
GOES_ON = (Status.QUEUED, Status.RUNNING)
STILL_HERE = b": still here\n\n"


log = logging.getLogger("silkline.events")


class Listener(asyncio.Queue[StreamEvent | None]):
    """The events that one stream has not sent yet. Hundreds of streams may be open, so its bytes are limited too."""

    def __init__(self) -> None:
        super().__init__(BACKLOG)
        self._bytes = 0

    def full(self) -> bool:
        return self._bytes > BACKLOG_BYTES or super().full()

    def _put(self, item: StreamEvent | None) -> None:
        super()._put(item)
        self._bytes += len(item.data) if item is not None else 0

    def _get(self) -> StreamEvent | None:
        item = super()._get()
        self._bytes -= len(item.data) if item is not None else 0
        return item


class EventSource(Protocol):
    cursor: Cursor

    def poll(self) -> list[StreamEvent]: ...


class PollTurns:
    """Lets one poll for each caller run at a time, in one of the caller's turns."""

    def __init__(self, turns: CallerTurns) -> None:
        self._turns = turns
        self._one = CallerTurns(most=sys.maxsize, most_each=1)

    @contextlib.asynccontextmanager
    async def turn(self, callers: Iterable[str]) -> AsyncIterator[None]:
        """A turn of one of these callers: of the one who waits least, because the poll is for all of them."""
        caller = min(callers, key=self._waiting, default="")
        async with self._one.turn(caller), self._turns.turn(caller):
            yield

    def _waiting(self, caller: str) -> int:
        return self._one.waiting(caller) + self._turns.waiting(caller)


class Feed:
    """One source and its listeners."""

    def __init__(self, source: EventSource, turns: PollTurns, *, slowest: float = INTERVAL) -> None:
        self.source = source
        self._turns = turns
        self.cursor: Cursor | None = None  # the last event that was sent; None before the first poll
        self._slowest = slowest
        self._listeners: dict[Listener, str] = {}  # each with its caller
        self._looked = asyncio.Event()
        self._eager = EAGER_LOOKS
        self._failing = False
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    def listen(self, caller: str) -> Listener:
        queue = Listener()
        self._listeners[queue] = caller
        self._eager = EAGER_LOOKS
        return queue

    def leave(self, queue: Listener) -> bool:
        """Remove a listener. Returns whether it was the last one."""
        self._listeners.pop(queue, None)
        return not self._listeners

    async def first_look(self) -> None:
        await self._looked.wait()

    def close(self) -> None:
        self._task.cancel()
        for queue in list(self._listeners):
            _dismiss(queue)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """After an unexpected error of the source: end the streams, so that their clients connect again."""
        if not task.cancelled():
            log.error("events failed, their streams end: %r", task.exception())
            self._looked.set()
            self.close()

    async def _run(self) -> None:
        while True:
            try:
                async with self._turns.turn(self._listeners.values()):
                    events = await run_in_threadpool(self.source.poll)
                self._failing = False
            except StoreError as error:
                if not self._failing:  # an outage may last for days
                    log.warning("no events for now: %s", error)
                self._failing = True
                events = []
            self._send_round(events)
            self.cursor = self.source.cursor
            self._looked.set()
            self._eager = max(0, self._eager - 1)
            await asyncio.sleep(min(EAGER, self._slowest) if self._eager else self._slowest)

    def _send_round(self, events: list[StreamEvent]) -> None:
        for queue in list(self._listeners):
            for event in events:
                try:
                    queue.put_nowait(event)
                except asyncio.QueueFull:
                    self._listeners.pop(queue, None)
                    _dismiss(queue)
                    break


def _dismiss(queue: Listener) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)


class Hub:
    """All feeds of this process."""

    def __init__(self, database: Database, *, most: int = 500, most_each: int = 100, check_every: float = 10.0) -> None:
        self._database = database
        self.turns = read_turns()  # of all requests that read
        self._polls = PollTurns(self.turns)
        self._feeds: dict[str, Feed] = {}
        self._check_every = check_every
        self._limit = CallerLimit(
            "event streams and waiting requests", "too-many-streams", most=most, most_each=most_each
        )
        self.closing = False

    def close(self) -> None:
        """End every stream, because the server shuts down."""
        self.closing = True
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()

    def admit(self, scope: Scope) -> None:
        """Count a stream or a waiting request until its answer ends. Raises a `Problem` if the limit is exceeded."""
        if self.closing:
            raise self._limit.full()
        self._limit.admit(scope)

    @contextlib.asynccontextmanager
    async def _listening(self, job_id: str, caller: str) -> AsyncIterator[tuple[Feed, Listener]]:
        """Listen to a job, or to all jobs if the id is empty."""
        feed = self._feeds.get(job_id)
        if feed is None:
            feed = self._feeds[job_id] = self._new_feed(job_id)
        queue = feed.listen(caller)
        try:
            yield feed, queue
        finally:
            if feed.leave(queue) and self._feeds.get(job_id) is feed:
                del self._feeds[job_id]
                feed.close()

    def _new_feed(self, job_id: str) -> Feed:
        if job_id:
            return Feed(JobSource(self._database, job_id), self._polls)
        return Feed(OverviewSource(self._database), self._polls, slowest=1.0)

    async def follow(self, job_id: str, seen: Cursor | None, valid: StillValid, caller: str) -> AsyncIterator[bytes]:
        """The stream of one job, from the cursor `seen`. It ends when the caller is no longer valid."""
        yield RETRY
        async with self._listening(job_id, caller) as (feed, queue):
            await feed.first_look()
            while not queue.empty():  # `catch_up` sends these events
                event = queue.get_nowait()
                if event is None or event.name == "gone":
                    return
            missed = catch_up(self._database, job_id, seen, feed.cursor or Cursor())
            check = RegularCheck(valid, self._check_every)
            while (event := await self._next_of(missed, caller)) is not None:
                if not await check.holds():
                    return
                yield event.frame()
            async for frame in _frames(queue, check):
                yield frame

    async def overview(self, valid: StillValid, caller: str) -> AsyncIterator[bytes]:
        """The stream of changes of all jobs, at most one event a second."""
        yield RETRY
        async with self._listening("", caller) as (_, queue):
            async for frame in _frames(queue, RegularCheck(valid, self._check_every)):
                yield frame

    async def settled(self, job_id: str, seconds: float, caller: str) -> None:
        """Wait until the job is neither queued nor running, at most this many seconds."""
        async with self._listening(job_id, caller) as (feed, queue):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await feed.first_look()
                    source = feed.source
                    while isinstance(source, JobSource) and source.status in GOES_ON:
                        event = await queue.get()
                        if event is None or event.ended:
                            return

    async def _next_of(self, events: Iterator[StreamEvent], caller: str) -> StreamEvent | None:
        async with self._polls.turn([caller]):
            return await run_in_threadpool(_next, events)


def _next(events: Iterator[StreamEvent]) -> StreamEvent | None:
    """The next event. None after the last one, and when the job was removed meanwhile."""
    try:
        return next(events, None)
    except NotFound:
        return None


async def _frames(queue: Listener, check: RegularCheck) -> AsyncIterator[bytes]:
    """Events when they come, and a keep-alive comment if there is none for a while. Ends if the caller is not valid."""
    clock = asyncio.get_running_loop().time
    sent = clock()
    while await check.holds():
        rest = min(check.due, sent + ALIVE_EVERY - clock())
        try:
            event = await asyncio.wait_for(queue.get(), max(rest, 0.001))
        except TimeoutError:
            if clock() >= sent + ALIVE_EVERY:
                sent = clock()
                yield STILL_HERE
            continue
        if event is None:
            return
        sent = clock()
        yield event.frame()
        if event.ended:
            return

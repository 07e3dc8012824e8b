"""Sends events to many listeners. Each watched job is polled once, however many listeners it has.

Everything runs on one event loop; only the polls run in threads. A listener that is too slow is disconnected. It can
reconnect with its `Last-Event-ID` and then gets every event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from silkline.api.caller_limit import CallerLimit
from silkline.api.sources import Cursor, JobSource, OverviewSource, StreamEvent, catch_up
from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.job import Job, Status

INTERVAL = 0.5
EAGER, EAGER_LOOKS = 0.1, 20  # a new listener often waits for an event that comes soon, such as a page
BACKLOG = 64
ALIVE_EVERY = 15.0
RETRY = b"retry: 2000\n\n"
STILL_HERE = b": still here\n\n"

Listener = asyncio.Queue[StreamEvent | None]
StillValid = Callable[[], bool]  # whether the token or the session of the caller is still valid

log = logging.getLogger("silkline.events")


class EventSource(Protocol):
    cursor: Cursor

    def poll(self) -> list[StreamEvent]: ...


class Feed:
    """One source and its listeners."""

    def __init__(self, source: EventSource, *, slowest: float = INTERVAL) -> None:
        self.source = source
        self.cursor: Cursor | None = None  # the last event that was sent; None before the first poll
        self._slowest = slowest
        self._listeners: set[Listener] = set()
        self._looked = asyncio.Event()
        self._eager = EAGER_LOOKS
        self._failing = False
        self._task = asyncio.create_task(self._run())

    def listen(self) -> Listener:
        queue: Listener = asyncio.Queue(BACKLOG)
        self._listeners.add(queue)
        self._eager = EAGER_LOOKS
        return queue

    def leave(self, queue: Listener) -> bool:
        """Remove a listener. Returns whether it was the last one."""
        self._listeners.discard(queue)
        return not self._listeners

    async def first_look(self) -> None:
        await self._looked.wait()

    def close(self) -> None:
        self._task.cancel()
        for queue in list(self._listeners):
            _dismiss(queue)

    async def _run(self) -> None:
        while True:
            try:
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
                    self._listeners.discard(queue)
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
    async def _listening(self, key: str, make: Callable[[], Feed]) -> AsyncIterator[tuple[Feed, Listener]]:
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = make()
        queue = feed.listen()
        try:
            yield feed, queue
        finally:
            if feed.leave(queue) and self._feeds.get(key) is feed:
                del self._feeds[key]
                feed.close()

    async def follow(self, job_id: str, seen: Cursor | None, valid: StillValid) -> AsyncIterator[bytes]:
        """The stream of one job, from the cursor `seen`. It ends when the caller is no longer valid."""
        yield RETRY
        async with self._listening(job_id, lambda: Feed(JobSource(self._database, job_id))) as (feed, queue):
            await feed.first_look()
            while not queue.empty():  # `catch_up` sends these events
                event = queue.get_nowait()
                if event is None or event.name == "gone":
                    return
            upto = feed.cursor or Cursor()
            missed = catch_up(self._database, job_id, seen, upto)
            while (event := await run_in_threadpool(_next_of, missed)) is not None:
                yield event.frame()
            async for frame in _frames(queue, valid, self._check_every):
                yield frame

    async def overview(self, valid: StillValid) -> AsyncIterator[bytes]:
        """The stream of changes of all jobs, at most one event a second."""
        yield RETRY
        async with self._listening("", lambda: Feed(OverviewSource(self._database), slowest=1.0)) as (_, queue):
            async for frame in _frames(queue, valid, self._check_every):
                yield frame

    async def settled(self, job_id: str, seconds: float) -> None:
        """Wait until the job is neither queued nor running, at most this many seconds."""
        async with self._listening(job_id, lambda: Feed(JobSource(self._database, job_id))) as (feed, queue):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await feed.first_look()
                    source = feed.source
                    while isinstance(source, JobSource) and _goes_on(source.job):
                        event = await queue.get()
                        if event is None or event.ended:
                            return


def _next_of(events: Iterator[StreamEvent]) -> StreamEvent | None:
    return next(events, None)


def _goes_on(job: Job | None) -> bool:
    return job is not None and job.status in (Status.QUEUED, Status.RUNNING)


async def _frames(queue: Listener, valid: StillValid, check_every: float) -> AsyncIterator[bytes]:
    """Events when they come, and a keep-alive comment if there is none for a while. Ends if the caller is not valid."""
    clock = asyncio.get_running_loop().time
    checked = sent = clock()
    while True:
        if clock() >= checked + check_every:
            if not await _checked(valid):
                return
            checked = clock()
        rest = min(checked + check_every, sent + ALIVE_EVERY) - clock()
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


async def _checked(valid: StillValid) -> bool:
    try:
        return await run_in_threadpool(valid)
    except StoreError:  # no new events come either, and the feed logs why
        return True

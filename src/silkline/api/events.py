"""Sends events to many listeners. Each watched job is polled once, however many listeners it has.

Everything runs on one event loop; only the polls run in threads. A listener that is too slow is disconnected. It can
reconnect with its `Last-Event-ID` and then gets every event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from silkline.api.auth import ANYBODY
from silkline.api.connections import network_of
from silkline.api.problems import Problem
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
            except StoreError as error:
                log.warning("no events for now: %s", error)
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

    def __init__(self, database: Database, *, most: int = 500, most_each: int = 100) -> None:
        self._database = database
        self._feeds: dict[str, Feed] = {}
        self._most = most
        self._most_each = most_each
        self._streams: Counter[str] = Counter()
        self.closing = False

    def close(self) -> None:
        """End every stream, because the server shuts down."""
        self.closing = True
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()

    def admit(self, scope: Scope) -> None:
        """Count a stream or a waiting request until its answer ends. Raises a `Problem` if the limit is exceeded."""
        caller = caller_of(scope)
        if self._streams.total() >= self._most or self.closing:
            raise Problem(
                "too-many-streams", f"the server allows at most {self._most} event streams and waiting requests"
            )
        if self._streams[caller] >= self._most_each:
            raise Problem(
                "too-many", f"each caller may have at most {self._most_each} event streams and waiting requests"
            )
        self._streams[caller] += 1
        scope["at_end"].callback(self._streams.subtract, [caller])

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

    async def follow(self, job_id: str, seen: Cursor | None) -> AsyncIterator[bytes]:
        """The stream of one job, from the cursor `seen`."""
        yield RETRY
        async with self._listening(job_id, lambda: Feed(JobSource(self._database, job_id))) as (feed, queue):
            await feed.first_look()
            while not queue.empty():  # `catch_up` sends these events
                event = queue.get_nowait()
                if event is None or event.name == "gone":
                    return
            upto = feed.cursor or Cursor()
            for event in await run_in_threadpool(catch_up, self._database, job_id, seen, upto):
                yield event.frame()
            async for frame in _frames(queue):
                yield frame

    async def overview(self) -> AsyncIterator[bytes]:
        """The stream of changes of all jobs, at most one event a second."""
        yield RETRY
        async with self._listening("", lambda: Feed(OverviewSource(self._database), slowest=1.0)) as (_, queue):
            async for frame in _frames(queue):
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


def caller_of(scope: Scope) -> str:
    """The caller that a stream counts for: a token, or an address if no token is needed."""
    caller = scope["caller"]
    return network_of(scope.get("client")) if caller == ANYBODY else caller.id


def _goes_on(job: Job | None) -> bool:
    return job is not None and job.status in (Status.QUEUED, Status.RUNNING)


async def _frames(queue: Listener) -> AsyncIterator[bytes]:
    """Events when they come, and a keep-alive comment if there is none for a while."""
    while True:
        try:
            event = await asyncio.wait_for(queue.get(), ALIVE_EVERY)
        except TimeoutError:
            yield STILL_HERE
            continue
        if event is None:
            return
        yield event.frame()
        if event.ended:
            return

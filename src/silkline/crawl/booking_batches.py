"""Makes the bookings of all fetchers of a job, in batches: one statement at a time, for all hosts that wait for it.

The database says in how many seconds a booking starts and ends. Its clock was read between the moment before the
statement and the moment after it. So the start counts from the later moment and the end from the earlier one: no clocks
are compared, and a slow database makes bookings shorter, never too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from silkline.crawl.messages import Book, BookHost, Granted, HostTime
from silkline.crawl.plan import Plan
from silkline.errors import StoreError, Unavailable
from silkline.model.kind import Progress
from silkline.store import bookings
from silkline.store.bookings import Asked

_AGAIN: Final = 0.5
_ROUNDING: Final = 0.001
"""SQLite rounds its time down to milliseconds."""
_MOST_SLACK: Final = 2.0
_LONGEST: Final = 60.0
_REMEMBERED: Final = 10_000
Reply = Callable[[Granted], None]


class BookingBatches:
    """Must be created inside an event loop. Its thread and its connection exist from the first booking on."""

    def __init__(self, progress: Progress, plan: Plan, log: logging.Logger) -> None:
        self._progress = progress
        self._tolerance = plan.tuning.booking_seconds
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: dict[str, tuple[BookHost, int, Reply]] = {}
        self._held: dict[str, tuple[int, float]] = {}
        self._task: asyncio.Task[None] | None = None
        self._slack = 0.0

    def ask(self, message: Book, reply: Reply) -> None:
        """Book hosts for a fetcher. `reply` gets the answer."""
        for each in message.hosts:
            self._waiting[each.host] = (each, message.owner, reply)
        if self._task is None and self._waiting:
            self._task = self._loop.create_task(self._work())

    def close(self, *, quiet: bool) -> None:
        """No more requests are sent. `quiet`: none is on its way either, so the rest of the bookings is given back."""
        if self._task is not None:
            self._task.cancel()
        if self._thread is None:
            return
        now = time.monotonic()
        held = [(host, owner) for host, (owner, ends) in self._held.items() if quiet and ends > now]
        with contextlib.suppress(StoreError):  # they end by themselves
            self._thread.submit(bookings.release, self._progress.database, held).result()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, {}
                await self._book(batch)
        except Exception as error:
            self._loop.call_exception_handler({"message": "hosts could not be booked", "exception": error})
        finally:
            self._task = None

    async def _book(self, batch: Mapping[str, tuple[BookHost, int, Reply]]) -> None:
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="bookings")
        asked = [
            Asked(host, owner, each.delay, min(each.length, _LONGEST) + self._slack)
            for host, (each, owner, _) in batch.items()
        ]
        addresses: dict[str, float] = {}
        for each, _, _ in batch.values():
            if each.address:
                addresses[each.address] = addresses.get(each.address, 0.0) + each.address_time
        database, job_id = self._progress.database, self._progress.job.id
        outage = False
        while True:
            before = time.monotonic()
            try:
                made = await self._loop.run_in_executor(self._thread, bookings.book, database, job_id, asked, addresses)
                break
            except Unavailable as error:
                if not outage:
                    self._log.warning("hosts wait, because they cannot be booked: %s", error)
                outage = True
                await asyncio.sleep(_AGAIN)
        after = time.monotonic()
        self._slack = min(2 * (after - before), _MOST_SLACK)
        waits = {name: booked - addresses[name] - self._tolerance for name, booked in made[1].items()}
        answers: dict[Reply, list[HostTime]] = {}
        for booked in made[0]:
            each, owner, reply = batch[booked.host]
            starts = after + max(booked.starts, waits.get(each.address, 0.0))
            ends = before + booked.ends - _ROUNDING
            if each.kept:
                self._held.pop(booked.host, None)
            else:
                self._held[booked.host] = (owner, ends)
            time_of_host = HostTime(booked.host, starts, ends, booked.behind or "", booked.idle)
            answers.setdefault(reply, []).append(time_of_host)
        if len(self._held) > _REMEMBERED:
            self._held = {host: held for host, held in self._held.items() if held[1] > after}
        for reply, hosts in answers.items():
            reply(Granted(hosts))

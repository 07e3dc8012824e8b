"""The wait loop of a leader. It is woken by its tasks, by orders of the supervisor and by unexpected errors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from silkline.model.job import End
from silkline.model.kind import Control


class AttemptLoop:
    """Must be created inside an event loop, one for each attempt of a job."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failure: BaseException | None = None
        self.order: End | None = None

    def catch_errors(self) -> None:
        """From now on `check` raises an error that happened in a callback. The job must not continue, because the work
        of that callback is missing."""
        self._loop.set_exception_handler(self._unexpected)

    def hear(self, control: Control) -> None:
        """From now on `order` holds the last order of the supervisor."""
        control.subscribe(self._ordered)

    def hear_of_links(self, control: Control, callback: Callable[[], None]) -> None:
        """From now on call back, in the event loop, whenever links of other shards may wait in the database."""

        def call() -> None:
            callback()
            self._woken.set()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed, so the attempt is over
                self._loop.call_soon_threadsafe(call)

        control.subscribe_to_links(tell)

    def check(self) -> None:
        """Raise the first error of a task or a callback."""
        if self._failure is not None:
            raise self._failure

    def wake(self) -> None:
        self._woken.set()

    async def pause(self, seconds: float) -> None:
        """Wait until `wake`, at most this many seconds."""
        self._woken.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), seconds)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _ordered(self, order: End) -> None:
        """Called from another thread."""

        def take() -> None:
            self.order = order
            self._woken.set()

        with contextlib.suppress(RuntimeError):  # the loop was closed, so the attempt is over
            self._loop.call_soon_threadsafe(take)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()
            self._woken.set()

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        self._failure = self._failure or context.get("exception") or RuntimeError(context["message"])
        self._woken.set()

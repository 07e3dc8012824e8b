"""What kinds that fetch share: a checkpoint when it is time for one, and orders obeyed while visits are under way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from silkline.crawl.messages import FetchedPage
from silkline.crawl.recorder import Recorder
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import Checkpoint, NewResult, Settled

MOST_UNSAVED: Final = 2_000
_BEAT: Final = 0.1
_REPORT: Final = 5.0


class Books:
    """Keeps the recorder's books up to date beside some work, and holds the work up when they fall behind."""

    def __init__(self, context: Context, recorder: Recorder) -> None:
        self._context = context
        self.recorder = recorder
        self._unsaved = 0
        self._room = asyncio.Event()
        recorder.on_saved = self._saved

    async def keep(self, work: Awaitable[None], stop: Callable[[], None]) -> End | None:
        """Do the work, with checkpoints beside it. An order calls `stop`, and is the answer if work is left."""
        loop = asyncio.get_running_loop()

        def order(_: End) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: there is nothing left to stop
                loop.call_soon_threadsafe(stop)

        self._context.control.subscribe(order)
        over = asyncio.Event()
        working, keeper = asyncio.ensure_future(work), asyncio.create_task(self._keep_up(over))
        try:
            await asyncio.wait({working, keeper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            working.cancel()
            over.set()  # the keeper is not cancelled: a checkpoint that its thread has not begun would be lost
            await asyncio.gather(working, keeper, return_exceptions=True)
        for task in (keeper, working):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        await self.recorder.save()
        await self.recorder.ask(self._context.progress.record, Checkpoint())  # nothing is in flight any more
        return self._context.control.order if self.recorder.pending else None

    async def end(self, settled: Settled, result: NewResult | None) -> None:
        """One URL has come to its end."""
        while self._unsaved >= MOST_UNSAVED:
            self._room.clear()
            await self._room.wait()
        self.end_now(settled, result)

    def end_now(self, settled: Settled, result: NewResult | None) -> None:
        """The same without waiting for room, for what must share a checkpoint with something else."""
        self._unsaved += 1
        self.recorder.deliver((None, 0), [FetchedPage(settled, result, 0)])

    async def _keep_up(self, over: asyncio.Event) -> None:
        """A checkpoint when it is time for one; a sign of life now and then."""
        reported = 0.0
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), _BEAT)
            if self.recorder.due or self._unsaved >= MOST_UNSAVED:
                await self.recorder.save()
            reported += _BEAT
            if reported >= _REPORT:
                reported = 0.0
                self._context.progress.report()

    def _saved(self, deliveries: list[Any]) -> None:
        self._unsaved -= len(deliveries)
        self._room.set()

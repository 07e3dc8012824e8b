"""The leader of a small job: what is in the books is durable when the job is said to be over."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from silkline.crawl.fetcher import Fetcher
from silkline.crawl.messages import FoundUrl
from silkline.crawl.plan import Tuning
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.recorder import Recorder
from silkline.crawl.small_leader import SmallLeader
from silkline.kinds.reader_limits import reader_for
from silkline.model.database import Database
from silkline.model.job import End
from silkline.model.kind import Context, KindSettings
from silkline.model.ledger import QUEUED, Checkpoint, QueuedUrl, Settled
from silkline.model.spec import SiteSpec
from silkline.store.opening import open_database

TUNING = Tuning(checkpoint_pages=1)
LOG = logging.getLogger("test")


class Stored:
    """Progress that remembers the checkpoints; the database behind it stays empty."""

    job = SimpleNamespace(id="01900000-0000-7000-8000-000000000000", attempt=1)

    def __init__(self, database: Database) -> None:
        self.database = database
        self.checkpoints: list[Checkpoint] = []

    def record(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.append(checkpoint)

    def report(self) -> None:
        pass


class Planned:
    """A job that asks for nothing: its books are filled by the test."""

    full = False
    over = False

    def __init__(self, plant: Callable[[], Any]) -> None:
        self._plant = plant

    async def begin(self, fetcher: Fetcher) -> None:
        await self._plant()

    async def search(self) -> None:
        pass

    async def select(self, rows: list[QueuedUrl]) -> list[QueuedUrl]:
        return rows

    def close(self) -> None:
        pass


def found(number: int) -> FoundUrl:
    return FoundUrl(number, f"https://a.example/{number}", "a.example", 0, QUEUED, None, None, None, "seed")


def lead(
    folder: Path, plant: Callable[[Recorder], Any], ordered: Callable[[Any], None] = lambda _: None
) -> tuple[Stored, End | None]:
    """Runs a job whose books are filled by `plant`; what became durable, and what the leader answers."""
    database = open_database(f"sqlite:///{folder / 'silkline.db'}")
    stored: Any = Stored(database)
    control: Any = SimpleNamespace(order=None, subscribe=ordered)

    async def scenario() -> End | None:
        plan = plan_of(SiteSpec(url="https://a.example/"), fetchers=1, concurrency=1, tuning=TUNING)
        context = Context(None, control, stored, LOG, KindSettings(data=str(folder)))
        leader = SmallLeader(context, plan, reader_for(context, plan))
        job: Any = Planned(lambda: plant(leader.recorder))
        try:
            return await leader.run(job)
        finally:
            leader.close()

    try:
        return stored, asyncio.run(scenario())
    finally:
        database.close()


def settled(stored: Stored) -> list[int]:
    return [each.id for checkpoint in stored.checkpoints for each in checkpoint.settled]


def test_work_that_ends_while_a_checkpoint_is_on_its_way_loses_nothing(tmp_path: Path) -> None:
    gate = threading.Event()
    tasks: list[asyncio.Future[Any]] = []

    async def plant(recorder: Recorder) -> None:
        recorder.append([found(1), found(2)])
        recorder.end(Settled(1, "done"))
        tasks.append(asyncio.ensure_future(recorder.ask(gate.wait)))  # the thread, as on a loaded machine
        tasks.append(asyncio.ensure_future(recorder.save()))
        await asyncio.sleep(0)
        recorder.end(Settled(2, "done"))
        asyncio.get_running_loop().call_later(0.2, gate.set)

    stored, order = lead(tmp_path, plant)
    assert settled(stored) == [1, 2]
    assert order is None


def test_an_order_that_comes_before_anything_is_known_ends_the_attempt_and_not_the_job(tmp_path: Path) -> None:
    began = threading.Event()

    def ordered(callback: Callable[[End], None]) -> None:
        threading.Thread(target=lambda: (began.wait(60), callback(End.PAUSED))).start()

    async def plant(recorder: Recorder) -> None:
        began.set()
        await asyncio.Event().wait()  # a robots.txt that never comes

    _, order = lead(tmp_path, plant, ordered)
    assert order is End.PAUSED


def test_an_error_while_the_books_are_filled_is_raised(tmp_path: Path) -> None:
    async def plant(recorder: Recorder) -> None:
        raise LookupError("nothing to begin with")

    with pytest.raises(LookupError, match="nothing to begin with"):
        lead(tmp_path, plant)

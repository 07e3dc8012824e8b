"""The books of kinds that fetch: what was put into them is durable when the work is said to be done."""

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import Any

from silkline.crawl.plan import Tuning, plan_of
from silkline.crawl.recorder import Recorder
from silkline.kinds.books import Books
from silkline.model.kind import Context, KindSettings
from silkline.model.ledger import Checkpoint, Settled
from silkline.model.spec import SiteSpec

TUNING = Tuning(checkpoint_pages=1)


class Stored:
    """Progress that remembers the checkpoints."""

    def __init__(self) -> None:
        self.checkpoints: list[Checkpoint] = []

    def record(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.append(checkpoint)

    def report(self) -> None:
        pass


def test_work_that_ends_while_a_checkpoint_is_on_its_way_loses_nothing() -> None:
    stored: Any = Stored()
    control: Any = SimpleNamespace(order=None, subscribe=lambda callback: None)
    log = logging.getLogger("test")

    async def scenario() -> None:
        plan = plan_of(SiteSpec(url="https://a.example/"), fetchers=1, concurrency=1, tuning=TUNING)
        recorder = Recorder(stored, plan, log)
        books = Books(Context(None, control, stored, log, KindSettings(data="")), recorder)
        gate, under_way = threading.Event(), asyncio.Event()
        recorder.live = lambda: {"under_way": under_way.set()}
        busy = asyncio.ensure_future(recorder.ask(gate.wait))  # the thread, as on a loaded machine

        async def work() -> None:
            await books.end(Settled(1, "done"), None)
            await under_way.wait()
            asyncio.get_running_loop().call_later(0.2, gate.set)

        await books.keep(work(), lambda: None)
        await busy
        recorder.close()

    asyncio.run(scenario())
    assert [settled.id for checkpoint in stored.checkpoints for settled in checkpoint.settled] == [1]

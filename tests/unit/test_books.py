"""The checkpoints beside some work."""

import asyncio
from types import SimpleNamespace
from typing import Any

from silkline.workers.books import Books


class SlowRecorder:
    """One checkpoint, which takes until the gate opens."""

    pending = 0
    due = True

    def __init__(self) -> None:
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.saved = 0
        self._saving = asyncio.Lock()

    async def save(self) -> None:
        async with self._saving:
            if self.due:
                self.due = False
                self.begun.set()
                await self.gate.wait()
                self.saved += 1

    async def ask(self, *_: Any) -> None:
        """Nothing is asked here."""


def test_a_checkpoint_under_way_is_not_given_up_when_the_work_ends() -> None:
    async def whole() -> int:
        recorder = SlowRecorder()
        control = SimpleNamespace(subscribe=lambda _: None, order=None)
        context: Any = SimpleNamespace(control=control, progress=SimpleNamespace(record=None, report=None))

        async def work() -> None:
            await recorder.begun.wait()
            asyncio.get_running_loop().call_later(0.05, recorder.gate.set)

        await Books(context, recorder).keep(work(), lambda: None)  # type: ignore[arg-type]
        return recorder.saved

    assert asyncio.run(whole()) == 1

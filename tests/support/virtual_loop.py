"""An event loop whose time passes only while it waits: hours of a crawl take less than a second."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from selectors import DefaultSelector
from typing import Any, TypeVar
from unittest.mock import patch

Done = TypeVar("Done")


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 1_000.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        return self.now


class _Skipping(DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen again")
        self._loop.now += max(0.0, timeout)
        return super().select(0)


def run_virtually(work: Callable[[], Coroutine[Any, Any, Done]]) -> Done:
    """Run it to its end. `time.monotonic` is the time of the loop meanwhile."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        with patch.object(time, "monotonic", loop.time):
            return runner.run(work())

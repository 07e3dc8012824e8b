"""A thread that does one task of the supervisor again and again, until it is stopped."""

import threading
from typing import Final

LONGEST_STOP: Final = 30.0


class BackgroundThread:
    """A task implements `_run`, which returns soon after `_stopping` is set."""

    def __init__(self, name: str) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=LONGEST_STOP)

    def _run(self) -> None:
        raise NotImplementedError

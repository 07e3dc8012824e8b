"""Waits for the events that wake the main loop: a signal, a database notification, or a timeout."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from silkline.errors import StoreError
from silkline.model.database import Database, WakeupListener

log = logging.getLogger("silkline.supervisor")


class EventWait:
    """Used by the thread of the main loop only. Signal handlers only store the signal and wake the loop."""

    def __init__(self) -> None:
        self._signals: deque[int] = deque()
        self._listener: WakeupListener | None = None
        self._warned = False
        self._selector = selectors.DefaultSelector()
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._reading, selectors.EVENT_READ)

    @property
    def listening(self) -> bool:
        """Whether the database can notify this process."""
        return self._listener is not None

    def catch_signals(self, numbers: Iterable[signal.Signals]) -> Callable[[], None]:
        """Install the signal handlers and return a function that restores the old ones.

        Only the main thread may install handlers. In any other thread this function does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        before = {number: signal.signal(number, lambda number, _: self._receive(number)) for number in numbers}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore

    def signals(self) -> Iterator[int]:
        """Remove and return the signals that arrived, oldest first."""
        while self._signals:
            yield self._signals.popleft()

    def wait(self, seconds: float) -> list[str]:
        """Wait for an event, at most this long. Returns the database notifications, as `WakeupListener.drain`."""
        heard: list[str] = []
        for key, _ in self._selector.select(max(0.0, seconds)):
            if key.fileobj == self._reading:
                os.read(self._reading, 4096)
            elif self._listener is not None:
                heard += self._read_notifications(self._listener)
        return heard

    def listen(self, database: Database, worker_id: str, poll_interval: float) -> None:
        """Start to listen for database notifications. If that fails, the loop still polls."""
        if self._listener is not None:
            return
        try:
            self._listener = database.listen(worker_id)
        except OSError as error:
            if not self._warned:
                log.warning(
                    "database notifications are not available, so new jobs wait up to %g s: %s", poll_interval, error
                )
            self._warned = True
            return
        self._warned = False
        self._selector.register(self._listener, selectors.EVENT_READ)

    def stop_listening(self) -> None:
        if self._listener is not None:
            for key in [key for key in self._selector.get_map().values() if key.fileobj is self._listener]:
                self._selector.unregister(key.fd)
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        self._selector.close()
        os.close(self._reading)
        os.close(self._writing)

    def _read_notifications(self, listener: WakeupListener) -> list[str]:
        try:
            return listener.drain()
        except StoreError:
            self.stop_listening()
            return [""]  # some may be lost: look for all work

    def _receive(self, number: int) -> None:
        self._signals.append(number)
        with contextlib.suppress(OSError):  # the pipe is full: the loop wakes anyway; or closed: the loop has ended
            os.write(self._writing, b"!")

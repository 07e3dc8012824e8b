"""What people want of a running attempt, as it comes in on another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from silkline.model.job import End


class Orders:
    """The last order, for those who look, wait or want to be called."""

    def __init__(self) -> None:
        self._order: End | None = None
        self._ordered = threading.Event()
        self._callbacks: list[Callable[[End], None]] = []
        self._lock = threading.RLock()  # a signal may give an order while this very thread subscribes

    @property
    def order(self) -> End | None:
        return self._order

    def wait(self, seconds: float) -> End | None:
        self._ordered.wait(seconds)
        return self._order

    def subscribe(self, callback: Callable[[End], None]) -> None:
        """Be called with every order that comes, and with the one that stands."""
        with self._lock:
            self._callbacks.append(callback)
            order = self._order
        if order is not None:
            callback(order)

    def give(self, order: End) -> None:
        with self._lock:
            if self._order is order:
                return
            self._order = order
            self._ordered.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(order)

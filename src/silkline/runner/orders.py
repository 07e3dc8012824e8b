"""The orders for a running attempt, and the news that links of other shards may wait. They arrive in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from silkline.model.job import End


class Orders:
    """Keeps the last order. Callers can read it, wait for it, or subscribe to it."""

    def __init__(self) -> None:
        self._order: End | None = None
        self._ordered = threading.Event()
        self._callbacks: list[Callable[[End], None]] = []
        self._link_callbacks: list[Callable[[], None]] = []
        self._lock = threading.RLock()  # a signal handler may give an order while the same thread subscribes

    @property
    def order(self) -> End | None:
        return self._order

    def wait(self, seconds: float) -> End | None:
        self._ordered.wait(seconds)
        return self._order

    def subscribe(self, callback: Callable[[End], None]) -> None:
        """Call back for every new order, and at once for an order that was given before."""
        with self._lock:
            self._callbacks.append(callback)
            order = self._order
        if order is not None:
            callback(order)

    def subscribe_to_links(self, callback: Callable[[], None]) -> None:
        """Call back whenever links of other shards may wait in the database."""
        with self._lock:
            self._link_callbacks.append(callback)

    def tell_of_links(self) -> None:
        with self._lock:
            callbacks = list(self._link_callbacks)
        for callback in callbacks:
            callback()

    def give(self, order: End) -> None:
        with self._lock:
            if self._order is order:
                return
            self._order = order
            self._ordered.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(order)

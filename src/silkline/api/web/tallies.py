"""Counts that have to read a whole ledger. Each is kept for a while: the longer it took, the longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

YOUNG = 2.0
PATIENCE = 20  # a count may take a twentieth of the time at most
KEPT = 500


class Tallies:
    """Remembers what was counted, by name and job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[Any, ...], tuple[float, Any]] = {}

    def get(self, count: Callable[..., Any], *arguments: Any) -> Any:
        """What `count` gives, or what it gave a moment ago."""
        key = (count.__name__, *arguments[1:])
        with self._lock:
            until, value = self._found.get(key, (0.0, None))
        began = time.monotonic()
        if began < until:
            return value
        value = count(*arguments)
        took = time.monotonic() - began
        with self._lock:
            if len(self._found) >= KEPT:
                self._found.clear()
            self._found[key] = (time.monotonic() + max(YOUNG, PATIENCE * took), value)
        return value

"""What the browser may tell us about one page. A page chooses how many events there are, and much of their text; all of
them are read in the process that also fetches other pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_EACH: Final = 1_000
"""An event takes as long as so many bytes more: it is decoded, and mostly answered."""
_MOST_REPAIRED: Final = 4 << 20
"""Bytes of messages with invalid characters. To replace them takes up to 0.1 s for each megabyte."""


class MessageBudget:
    """`on_spent` is called once, with the reason, when the page has used more than `most` bytes. From then on, all its
    messages are dropped."""

    def __init__(self, most: int, on_spent: Callable[[str], None]) -> None:
        self._most = most
        self._left = most
        self._repairs_left = _MOST_REPAIRED
        self._on_spent = on_spent
        self.spent = False

    def take(self, size: int) -> bool:
        """Charge an event. False: it must be dropped."""
        self._left -= size + _EACH
        if self._left < 0:
            self.end(f"more than {self._most // 1_000_000} MB of events")
        return not self.spent

    def take_repair(self, size: int) -> bool:
        """Charge the repair of a message. False: it must be dropped."""
        self._repairs_left -= size
        if self._repairs_left < 0:
            self.end(f"more than {_MOST_REPAIRED // 1_000_000} MB of events with invalid characters")
        return not self.spent

    def end(self, why: str) -> None:
        if not self.spent:
            self.spent = True
            self._on_spent(why)

"""The room for large bodies that are arriving: for each caller, and in all. Runs on the event loop only.

When there is no room for a body, the caller who holds the most loses the oldest body of those that still arrive, if the
caller of the new body would hold less. So callers who send large bodies slowly keep nobody out who sends less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from silkline.api.problems import Problem

TOGETHER: Final = 4  # this many of the largest bodies may be in memory at once
EACH: Final = 2  # of these, for one caller


@dataclass(eq=False, slots=True)
class HeldBody:
    """A body of a request. `whole`: the size that it will have, or may have."""

    caller: str
    whole: int
    size: int = 0
    arrives: bool = True
    refused: bool = False
    stop_waiting: Callable[[], None] = lambda: None


class BodyRoom:
    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._bodies: dict[HeldBody, None] = {}  # oldest first
        self._held: Counter[str] = Counter()  # bytes, by caller

    def hold(self, body: HeldBody, size: int) -> None:
        """Count a body, which has this size by now. Raises a `Problem` if there is no room for it."""
        more = size - body.size
        if self._held[body.caller] + more > EACH * self._largest:
            raise Problem("too-many", "the server is reading large bodies of yours already; send this one again later")
        would_hold = self._held[body.caller] - body.size + max(size, body.whole)
        for other in self._in_the_way(self._held.total() + more - TOGETHER * self._largest, would_hold):
            self.release(other)
            other.refused = True
            other.stop_waiting()
        self._bodies[body] = None
        self._held[body.caller] += more
        body.size = size

    def release(self, body: HeldBody) -> None:
        """May be called twice for a body."""
        if body in self._bodies:
            del self._bodies[body]
            self._held[body.caller] -= body.size
            if not self._held[body.caller]:
                del self._held[body.caller]

    def _in_the_way(self, missing: int, would_hold: int) -> list[HeldBody]:
        """The bodies that must make room for as many bytes as are missing. Raises a `Problem` if that is not enough."""
        left, chosen = Counter(self._held), list[HeldBody]()
        while missing > 0:
            others = (body for body in self._bodies if body.arrives and body not in chosen)
            largest = max(others, key=lambda body: left[body.caller], default=None)
            if largest is None or left[largest.caller] <= would_hold:
                raise busy()
            chosen.append(largest)
            left[largest.caller] -= largest.size
            missing -= largest.size
        return chosen


def busy() -> Problem:
    return Problem("busy", "the server is reading too many large bodies; send this one again later")

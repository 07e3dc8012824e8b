"""Limits how many answers that last long are open at the same time: for each caller, and in all."""

from __future__ import annotations

import threading
from collections import Counter

from starlette.types import Scope

from silkline.api.auth import ANYBODY
from silkline.api.problems import Problem
from silkline.model.client_network import network_of


class CallerLimit:
    """Counts the open answers of each caller. `what` names them, `kind` is the problem if there are too many in all."""

    def __init__(self, what: str, kind: str, *, most: int, most_each: int) -> None:
        self._what = what
        self._kind = kind
        self._most = most
        self._most_each = most_each
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()  # routes call from threads too

    def admit(self, scope: Scope) -> None:
        """Count an answer until it ends. Raises a `Problem` if the limit is exceeded."""
        caller = caller_of(scope)
        with self._lock:
            if self._open[caller] >= self._most_each:
                raise Problem("too-many", f"each caller may have at most {self._most_each} {self._what}")
            if self._open.total() >= self._most:
                raise self.full()
            self._open[caller] += 1
        scope["at_end"].callback(self._leave, caller)

    def full(self) -> Problem:
        return Problem(self._kind, f"the server allows at most {self._most} {self._what}")

    def _leave(self, caller: str) -> None:
        with self._lock:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


def caller_of(scope: Scope) -> str:
    """The caller that an answer counts for: a token, or an address if no token is needed."""
    caller = scope["caller"]
    return network_of(scope.get("client")) if caller == ANYBODY else caller.id

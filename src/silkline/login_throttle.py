"""Limits how often callers may send wrong tokens: for each address and in total.

Every wrong token takes one try from a supply that refills over time, so no address is blocked forever. Tokens that
Silkline created are not limited: nobody can guess them. The operator's token is accepted even if the supply is empty,
provided that it was used recently. So an attack does not block the operator.

A token that signs in very often waits too: each login is written to the database.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

EACH: Final = 20  # tries of one address
EACH_EVERY: Final = 6.0  # seconds until one more
ALL: Final = 200
ALL_EVERY: Final = 0.5
ADDRESSES: Final = 10_000
REMEMBERED: Final = 1_000
GOOD_FOR: Final = 3600.0
LOGINS: Final = 20  # of one token
LOGINS_EVERY: Final = 3.0  # seconds until one more


class Supply:
    """The number of tries that are left, and when it was counted."""

    def __init__(self, most: int, every: float, now: float) -> None:
        self._most, self._every = most, every
        self._left, self._at = float(most), now

    def left(self, now: float) -> float:
        self._left = min(self._most, self._left + (now - self._at) / self._every)
        self._at = now
        return self._left

    def take(self, now: float) -> None:
        self._left = max(0.0, self.left(now) - 1)

    def wait(self, now: float) -> float:
        """Seconds until one more try is available."""
        return max(0.0, 1 - self.left(now)) * self._every

    def is_full(self, now: float) -> bool:
        return self.left(now) >= self._most


class LoginThrottle:
    """May be used from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._all = Supply(ALL, ALL_EVERY, clock())
        self._each: OrderedDict[str, Supply] = OrderedDict()
        self._good: OrderedDict[str, float] = OrderedDict()
        self._logins: OrderedDict[str, Supply] = OrderedDict()

    def wait(self, address: str, digest: str) -> int:
        """The seconds after which this address may try a token; 0: now. The digest is that of the token."""
        with self._lock:
            now = self._clock()
            if self._good.get(digest, -GOOD_FOR) > now - GOOD_FOR:
                return 0
            supply = self._each.get(address)
            # An address without recent failures does not wait because of the failures of others.
            waits = [each.wait(now) for each in (supply, self._all) if supply is not None and each is not None]
        return math.ceil(max(waits, default=0.0))

    def take_login(self, token_id: str) -> int:
        """Count a login of a token. Returns the seconds to wait if it has signed in too often: it is not counted."""
        with self._lock:
            now = self._clock()
            supply = self._logins.pop(token_id, None) or Supply(LOGINS, LOGINS_EVERY, now)
            wait = supply.wait(now)
            if wait <= 0:
                supply.take(now)
            self._logins[token_id] = supply
            if len(self._logins) > REMEMBERED:
                self._logins.popitem(last=False)
        return math.ceil(wait)

    def was_right(self, digest: str) -> None:
        with self._lock:
            self._good[digest] = self._clock()
            self._good.move_to_end(digest)
            if len(self._good) > REMEMBERED:
                self._good.popitem(last=False)

    def was_wrong(self, address: str, digest: str) -> None:
        with self._lock:
            now = self._clock()
            self._good.pop(digest, None)
            supply = self._each.pop(address, None) or Supply(EACH, EACH_EVERY, now)
            supply.take(now)
            self._all.take(now)
            self._each[address] = supply
            if len(self._each) > ADDRESSES:
                self._each.popitem(last=False)
            oldest = next(iter(self._each))
            if self._each[oldest].is_full(now):
                del self._each[oldest]

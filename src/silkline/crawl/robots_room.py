"""Which origins may keep large robots.txt rules in memory. No origin loses them to a sender that keeps more.

Senders are registrable domains and addresses. If the room is used up, origins that do not need their rules soon lose
them first, and then those of the sender that keeps most, if it keeps more than the new one would. So the shares only
become more equal, and origins never take the rules from each other in turn. A new origin without room waits until
others have ended. Who loses its rules loads them again when it needs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from silkline.crawl.reading_turns import Sender

SMALL: Final = 4_096
"""Rules up to this size are always kept: larger ones are rare."""
MOST_LARGE: Final = 64 << 20
_LOOK_AGAIN: Final = 1.0
"""Seconds until the next look for origins that do not need their rules: there may be thousands."""


class RobotsRoom:
    """`sender_of` says to whom an origin belongs; `in_use`, whether it needs its rules soon. `on_lost` is called with
    an origin whose rules are not kept any more, because others need the room."""

    def __init__(
        self,
        sender_of: Callable[[str], Sender],
        in_use: Callable[[str], bool],
        on_lost: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._sender_of = sender_of
        self._in_use = in_use
        self._on_lost = on_lost
        self._clock = clock
        self._kept: dict[str, tuple[int, frozenset[str]]] = {}
        """The size of the rules of each origin, and the names of its sender."""
        self._origins: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The origins of each name, the newest last."""
        self._shares: defaultdict[str, int] = defaultdict(int)
        self._used = 0
        self._look_at = 0.0

    def add(self, origin: str, size: int) -> bool:
        """Keep the rules of an origin that has none here. False: there is no room."""
        if size <= SMALL:
            return True
        sender = self._sender_of(origin)
        names = frozenset({sender.domain, sender.address} - {""})
        if not self._make_room(size, size + max(self._shares.get(name, 0) for name in names)):
            return False
        self._kept[origin] = size, names
        self._used += size
        for name in names:
            self._origins[name][origin] = None
            self._shares[name] += size
        return True

    def drop(self, origin: str) -> None:
        """The rules of the origin are not kept any more, if they were."""
        if origin not in self._kept:
            return
        size, names = self._kept.pop(origin)
        self._used -= size
        for name in names:
            del self._origins[name][origin]
            self._shares[name] -= size
            if not self._origins[name]:
                del self._origins[name], self._shares[name]

    def _make_room(self, size: int, share: int) -> bool:
        """`share`: what the sender of the new rules would keep then."""
        if self._used + size > MOST_LARGE and self._clock() >= self._look_at:
            self._look_at = self._clock() + _LOOK_AGAIN
            self._lose([origin for origin in self._kept if not self._in_use(origin)])
        losers = self._of_larger_senders(self._used + size - MOST_LARGE, share)
        self._lose(losers or [])
        return losers is not None

    def _of_larger_senders(self, missing: int, share: int) -> list[str] | None:
        """Whose rules make so much room, the newest first; None if senders with a larger share do not keep so much."""
        if missing <= 0:
            return []
        losers: dict[str, None] = {}
        larger = {name: its for name, its in self._shares.items() if its > share}
        while missing > 0 and larger:
            name = max(larger, key=larger.__getitem__)
            origin = next(origin for origin in reversed(self._origins[name]) if origin not in losers)
            losers[origin] = None
            size, names = self._kept[origin]
            missing -= size
            for each in names & larger.keys():
                larger[each] -= size
                if larger[each] <= share:
                    del larger[each]
        return list(losers) if missing <= 0 else None

    def _lose(self, origins: list[str]) -> None:
        for origin in origins:
            self.drop(origin)
            self._on_lost(origin)

"""How far a fetcher has read one part of the ledger: the own URLs of its hosts, or the foreign ones. Pure.

Each part has its own room in memory and is read on its own, so foreign URLs, however many, keep no own one out.
"""

from __future__ import annotations


class LedgerPart:
    """`window`: how many of its URLs should be in memory at most."""

    __slots__ = ("_again", "_behind", "cursor", "foreign", "more", "size", "window")

    def __init__(self, window: int, *, foreign: bool) -> None:
        self.foreign = foreign
        self.window = window
        self.size = 0
        """Its URLs in memory."""
        # The ledger was read up to the cursor, and `more`: it may have further rows. `_behind` is the lowest id that
        # had no room. `_again`: there may be room now, so read from `_behind` again.
        self.cursor = 0
        self.more = False
        self._behind: int | None = None
        self._again = False

    @property
    def full(self) -> bool:
        return self.size >= self.window

    @property
    def unread(self) -> bool:
        """Whether the ledger may have URLs that are not in memory."""
        return self.more or self._behind is not None

    def refuse(self, id: int) -> None:
        """There is no room for a URL. It stays in the ledger."""
        self._again = self._again or self.full
        self._behind = id if self._behind is None else min(self._behind, id)

    def has_room_again(self) -> None:
        """There is room for some of the URLs that were refused."""
        self._again = True

    def wants_more(self) -> bool:
        """Whether to read more of it: there is room, and it has URLs that are not in memory."""
        if self.size > self.window // 2:
            return False
        if self.more:
            return True
        if self._behind is not None and (self._again or not self.size):
            self.cursor, self._behind, self._again, self.more = self._behind - 1, None, False, True
            return True
        return False

    def read_to(self, cursor: int, *, end: bool) -> None:
        """It was read up to an id. `end`: that is the last one of the ledger."""
        self.cursor = cursor
        self.more = not end

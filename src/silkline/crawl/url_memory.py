"""Values by URL, within a limit of characters: a URL may have 8,000 of them, so a number of URLs is no limit."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

Value = TypeVar("Value")
_MOST: Final = 32_000_000
_EACH: Final = 200
"""Bytes that an entry takes besides its text."""


class UrlMemory(Generic[Value]):
    """A mapping that drops its oldest entries when it is full."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._entries: dict[str, tuple[Value, int]] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, url: str) -> bool:
        return url in self._entries

    def put(self, url: str, value: Value, length: int = 0) -> None:
        """Remember a value; `length` is that of its text."""
        self.pop(url)
        size = _EACH + len(url) + length
        self._entries[url] = value, size
        self._size += size
        while self._size > self._most:
            self.pop(next(iter(self._entries)))

    def pop(self, url: str) -> Value | None:
        """The value, which is forgotten; None if there is none."""
        value, size = self._entries.pop(url, (None, 0))
        self._size -= size
        return value

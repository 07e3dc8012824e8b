"""Limits how long a value becomes when it is written as JSON.

The size is counted before anything is written, and a value that several names share counts each time that it would be
written: a few hundred bytes of a page can name a value of gigabytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

_NUMBER: Final = 25  # characters that the longest fraction takes
_BETWEEN: Final = 2  # brackets, commas and colons
_encode = msgspec.json.Encoder().encode
_pieces = json.JSONEncoder(ensure_ascii=False).iterencode


def beginning(value: Any, characters: int) -> str:
    """The first characters of a value as JSON. The rest is not written."""
    found: list[str] = []
    for piece in _pieces(value):
        found.append(piece)
        characters -= len(piece)
        if characters <= 0:
            return "".join(found)[: characters or None]
    return "".join(found)


class JsonBudget:
    """Bytes of JSON that are left for several values."""

    def __init__(self, size: int) -> None:
        self._left = size

    @property
    def is_exceeded(self) -> bool:
        return self._left < 0

    def fitting(self, value: Any) -> Any:
        """The value, or as much of it as fits, from its beginning on."""
        if isinstance(value, dict):
            self._left -= _BETWEEN
            return dict(self._pairs(value))
        if isinstance(value, list):
            self._left -= _BETWEEN
            return list(self._items(value))
        self._spend(value)
        return value

    def _pairs(self, value: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
        for name, item in value.items():
            self._spend(name)
            if self._left < 0:
                return
            kept = self.fitting(item)
            if self._left < 0 and not isinstance(item, dict | list):
                return
            yield name, kept

    def _items(self, value: list[Any]) -> Iterator[Any]:
        for item in value:
            if self._left < 0:
                return
            kept = self.fitting(item)
            if self._left < 0 and not isinstance(item, dict | list):
                return
            yield kept

    def _spend(self, value: Any) -> None:
        self._left -= _BETWEEN + (len(_encode(value)) if isinstance(value, str) else _length(value))


def _length(value: Any) -> int:
    return len(str(value)) if isinstance(value, int) else _NUMBER

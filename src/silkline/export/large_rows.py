"""Large rows are announced, so that whoever reads many results at once can wait until there is room for one more."""

from __future__ import annotations

from typing import Final

LARGE: Final = 256 << 10
_BYTES_OF_CHARACTER: Final = 4  # one emoji makes all characters of a text as large


class LargeRow:
    """Comes before a large row. The row is read when the reader goes on."""

    __slots__ = ("memory",)

    def __init__(self, characters: int) -> None:
        self.memory = _BYTES_OF_CHARACTER * characters
        """What the row takes until it is dropped, and nothing from then on."""

    def is_dropped(self) -> None:
        self.memory = 0


def announcement_of_bytes(size: int) -> LargeRow | None:
    return LargeRow(size // _BYTES_OF_CHARACTER) if size > LARGE else None


def announcement(characters: int) -> LargeRow | None:
    """What comes before a row of this stored length, if it is large."""
    return LargeRow(characters) if characters > LARGE else None

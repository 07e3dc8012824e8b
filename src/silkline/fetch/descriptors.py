"""Whether this process, or the machine, has run out of file descriptors: a reason to wait, never to fail."""

from __future__ import annotations

import errno
import os
from typing import Final

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE})
WAIT: Final = 0.25
"""Seconds until what found no descriptor is tried again."""
LONGEST_WAIT: Final = 300.0
_MOMENT: Final = 1.0


def out_of_files() -> bool:
    """Whether no file could be opened now. `dup` needs no path, so a confined process may ask too."""
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno in EXHAUSTED
    return False


class Shortage:
    """Remembers for a moment that there was none left: by the time one asks, another may have been closed."""

    def __init__(self) -> None:
        self._seen_at = float("-inf")

    def seen(self, now: float) -> bool:
        if out_of_files():
            self._seen_at = now
        return now - self._seen_at < _MOMENT

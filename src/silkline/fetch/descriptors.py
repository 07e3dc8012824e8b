"""Detects that this process or the machine has no free file descriptors. The caller waits and does not fail."""

from __future__ import annotations

import errno
import os
from typing import Final

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE})
WAIT: Final = 0.25
"""Seconds until the next try after no descriptor was free."""
LONGEST_WAIT: Final = 300.0
_MOMENT: Final = 1.0


def out_of_files() -> bool:
    """Whether no file can be opened now. `dup` needs no path, so it also works in a confined process."""
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno in EXHAUSTED
    return False


class Shortage:
    """Remembers a shortage for a short time, because a descriptor may become free before the check."""

    def __init__(self) -> None:
        self._seen_at = float("-inf")

    def seen(self, now: float) -> bool:
        if out_of_files():
            self._seen_at = now
        return now - self._seen_at < _MOMENT

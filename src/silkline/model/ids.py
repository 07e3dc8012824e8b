"""Job ids: UUID version 7, strictly increasing within a process, so that ids sort by time of creation."""

from __future__ import annotations

import re
import secrets
import threading
import uuid
from datetime import datetime

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_lock = threading.Lock()
_last = 0


def is_id(text: str) -> bool:
    """Whether the text has the form of an id."""
    return _ID.fullmatch(text) is not None


def new_id(now: datetime) -> str:
    """A new id: 48 bits of milliseconds, 12 bits of their fraction, 62 random bits (RFC 9562, method 3)."""
    global _last
    ticks = int(now.timestamp() * 1000 * 4096)
    with _lock:
        _last = ticks = max(ticks, _last + 1)
    milliseconds, fraction = divmod(ticks, 4096)
    number = (milliseconds << 80) | (7 << 76) | (fraction << 64) | (2 << 62) | secrets.randbits(62)
    return str(uuid.UUID(int=number))

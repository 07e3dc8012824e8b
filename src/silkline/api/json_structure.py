"""Counts the values of a JSON body before it is parsed.

A body of a few megabytes can contain millions of values. Each of them costs some hundred bytes, and time under the
interpreter's lock. The counts are exact and take linear time; text inside strings does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from silkline.api.problems import Problem

MOST_VALUES: Final = 300_000  # 100,000 URLs, or 1,000 pages with 300 links each
MOST_CONTAINERS: Final = 100_000
_BLOCK: Final = 1 << 18  # counted at once; a longer call would block the event loop


def check_size(body: bytes) -> None:
    """Refuse a body with too many values or containers."""
    if body.count(b",") <= MOST_VALUES and _containers(body) <= MOST_CONTAINERS:
        return  # even if none of them is inside a string
    values = containers = 0
    for outside in _outside_of_strings(body):
        values += outside.count(b",")
        containers += _containers(outside)
        if values > MOST_VALUES or containers > MOST_CONTAINERS:
            raise Problem(
                "too-large", f"a body may have at most {MOST_VALUES:,} values and {MOST_CONTAINERS:,} objects and lists"
            )


def _outside_of_strings(body: bytes) -> Iterator[bytes]:
    """The body without the text of its strings, one block at a time."""
    place, inside = 0, False
    while place < len(body):
        end = place + _BLOCK
        while body[end - 1 : end] == b"\\":  # do not split an escape
            end += 1
        parts = body[place:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[int(inside) :: 2])
        inside ^= len(parts) % 2 == 0
        place = end


def _containers(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")

"""How much a JSON body holds, counted before it is parsed, and whether what was parsed can be stored.

A body of a few megabytes can hold millions of values, each of which costs some hundred bytes and time under the
interpreter's lock. The counts are exact and linear: what stands inside strings does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from silkline.api.problems import Problem

MOST_VALUES: Final = 300_000  # 100,000 URLs, or 1,000 pages with 300 links each
MOST_CONTAINERS: Final = 100_000
MOST_DEPTH: Final = 64
INT_BITS: Final = 63
_BLOCK: Final = 1 << 18  # counted at once; a long call would keep the event loop from running


def check_size(body: bytes) -> None:
    """Refuse a body with too many values or containers."""
    if body.count(b",") <= MOST_VALUES and _containers(body) <= MOST_CONTAINERS:
        return  # even if all of them stand outside of strings
    values = containers = 0
    for outside in _outside_of_strings(body):
        values += outside.count(b",")
        containers += _containers(outside)
        if values > MOST_VALUES or containers > MOST_CONTAINERS:
            raise Problem(
                "too-large", f"a body may have at most {MOST_VALUES:,} values and {MOST_CONTAINERS:,} objects and lists"
            )


def _outside_of_strings(body: bytes) -> Iterator[bytes]:
    """The body without what stands inside quotes, a block at a time."""
    place, inside = 0, False
    while place < len(body):
        end = place + _BLOCK
        while body[end - 1 : end] == b"\\":  # an escape is not cut in two
            end += 1
        parts = body[place:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[int(inside) :: 2])
        inside ^= len(parts) % 2 == 0
        place = end


def _containers(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")


def check_values(value: Any) -> None:
    """Refuse what is nested too deeply, and numbers that no database and no other program would read back."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inside = [each for container in level for each in _values(container)]
        for each in inside:
            if isinstance(each, float) and not math.isfinite(each):
                raise Problem("bad-request", "the body contains a number that is too large")
            if isinstance(each, int) and each.bit_length() > INT_BITS:
                raise Problem("bad-request", "the body contains a whole number of more than 63 bits")
        level = [each for each in inside if isinstance(each, dict | list)]
        if not level:
            return
    raise Problem("bad-request", f"the body is nested too deeply: at most {MOST_DEPTH} levels")


def _values(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container

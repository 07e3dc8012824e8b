"""Parses durations: a number of seconds, or 250ms, 30s, 10m, 2h, 1d, 1h30m.

The command line, the settings, the payloads of jobs and the queries of the API all use it.
"""

from __future__ import annotations

import math
import re
from typing import Final

EXAMPLES: Final = "90 (seconds), 250ms, 30s, 10m, 2h or 1d"
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_NUMBER: Final = r"\d{1,12}(?:\.\d{1,9})?|\.\d{1,9}"
_PART: Final = re.compile(rf"({_NUMBER})\s*(ms|min|s|m|h|d)\s*")
_WHOLE: Final = re.compile(rf"(?:(?:{_NUMBER})\s*(?:ms|min|s|m|h|d)\s*)+")


def seconds_of(text: str) -> float:
    """The number of seconds of a text. `ValueError`: it is not a duration."""
    given = text.strip().lower()
    if _WHOLE.fullmatch(given):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(given))
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{text[:80]!r} is not a duration; examples: {EXAMPLES}")
    return found

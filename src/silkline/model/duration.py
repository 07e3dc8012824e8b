"""Parses durations: a number of seconds, or 250ms, 30s, 10m, 2h, 1d, 1h30m.

The command line, the settings, the payloads of jobs and the queries of the API all use it.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, WithJsonSchema

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


def _read(value: Any) -> Any:
    return seconds_of(value) if isinstance(value, str) else value


_SCHEMA: Final = {
    "anyOf": [
        {"type": "number", "minimum": 0, "description": "Seconds."},
        {"type": "string", "pattern": r"^[0-9]{1,3}(ms|s|m|h|d)?$", "description": "Such as 30s, 10m, 2h or 1d."},
    ]
}
Seconds = Annotated[float, BeforeValidator(_read)]
"""A number of seconds, or a text with units."""
ApiSeconds = Annotated[Seconds, WithJsonSchema(_SCHEMA)]
"""The same, with a description for the API."""

"""Limits for the lists of a payload: a list with too many items is refused before any of its items is checked.

The validator checks every item, also those beyond `max_length` that are wrong, and keeps an error for each of them. So
a megabyte of wrong items would take seconds and gigabytes. Every list of a request needs `at_most`, and `FailFast` if
it may have more items than an error message has room for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BeforeValidator, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from silkline.model.pattern import BadPatternAt, compile_patterns


def at_most(most: int, words: str = "") -> BeforeValidator:
    """Refuse a longer list, or an object with more names. `words`: what is said instead of its number of items."""

    def check(value: Any) -> Any:
        if isinstance(value, list | tuple | Mapping) and len(value) > most:
            raise ValueError(words or f"has {len(value):,} items, {most:,} are allowed")
        return value

    return BeforeValidator(check)


def checked_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns that can be used together. Each is compiled once; the error of a wrong one names its place."""
    try:
        compile_patterns(patterns)
    except BadPatternAt as error:
        wrong = PydanticCustomError("value_error", "{words}", {"words": str(error)})
        place = InitErrorDetails(type=wrong, loc=(error.place,), input=patterns[error.place])
        raise ValidationError.from_exception_data("patterns", [place]) from None
    return patterns

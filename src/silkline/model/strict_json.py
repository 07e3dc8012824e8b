"""Parses JSON strictly: each name once, only numbers that can be stored, whole characters, bounded depth.

The API reads request bodies with it, the command line reads `--payload` and `--metadata`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

MOST_DEPTH: Final = 64
INT_BITS: Final = 63
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class BadJson(ValueError):
    """The text is not the JSON that we accept."""


def parse_object(text: str, what: str) -> dict[str, Any]:
    """The JSON object in a text. `what` is the subject of the error message, such as "the body"."""

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return _each_once(pairs, what)

    def no_constant(name: str) -> Any:
        raise BadJson(f"{what} is not JSON: {name} is not a JSON number")

    try:
        value = json.loads(text, object_pairs_hook=each_once, parse_constant=no_constant)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise BadJson(f"{what} is nested too deeply") from error
    except UnicodeError as error:
        raise BadJson(f"{what} contains half of a surrogate pair") from error
    except BadJson:
        raise
    except ValueError as error:
        raise BadJson(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadJson(f"{what} must be a JSON object")
    _check_values(value, what)
    return value


def _each_once(pairs: list[tuple[str, Any]], what: str) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadJson(f"{what} contains the name {name[:100]!r} twice")
            seen.add(name)
    return value


def is_deeper_than(value: Any, most: int) -> bool:
    """Whether lists and objects are nested in more levels than this."""
    level = [value]
    for _ in range(most):
        level = [
            each
            for container in level
            for each in (container.values() if type(container) is dict else container)
            if type(each) is dict or type(each) is list
        ]
        if not level:
            return False
    return True


def _check_values(value: Any, what: str) -> None:
    """Refuse deep nesting, and numbers that databases and other programs cannot read."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inside = [each for container in level for each in _values(container)]
        for each in inside:
            if isinstance(each, float) and not math.isfinite(each):
                raise BadJson(f"{what} contains a number that is too large")
            if isinstance(each, int) and each.bit_length() > INT_BITS:
                raise BadJson(f"{what} contains a whole number of more than {INT_BITS} bits")
        level = [each for each in inside if isinstance(each, dict | list)]
        if not level:
            return
    raise BadJson(f"{what} is nested too deeply: at most {MOST_DEPTH} levels")


def _values(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container

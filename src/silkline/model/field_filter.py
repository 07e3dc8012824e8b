"""Conditions on the fields of a result, as users write them: `price<20`, `stock=true`, `name~lamp`, `sku`, `!sku`.

A result with rows has the conditions if one of its rows has all of them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

MOST: Final = 20
LONGEST: Final = 500
_CONDITION: Final = re.compile(r"\s*(!?)\s*([A-Za-z_]\w{0,80})\s*(?:(<=|>=|!=|<|>|=|~)(?![<>=~])\s*(.*))?", re.DOTALL)
_ORDERED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class BadCondition(ValueError):
    """The text is not a condition."""


class Condition(NamedTuple):
    """`sign` is empty for "has a value"; `wanted` is the text after it."""

    field: str
    sign: str
    wanted: str
    negated: bool = False

    def holds(self, row: Mapping[str, Any]) -> bool:
        value = row.get(self.field)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if not self.sign:
            return bool(values) != self.negated
        if self.sign == "!=":
            return not any(_is(each, self.wanted) for each in values)
        return any(self._fits(each) for each in values)

    def _fits(self, value: Any) -> bool:
        if self.sign == "=":
            return _is(value, self.wanted)
        if self.sign == "~":
            return self.wanted.casefold() in str(value).casefold()
        if isinstance(value, bool):
            return False
        if isinstance(value, int | float):
            number = _number(self.wanted)
            return number is not None and _ORDERED[self.sign](value, number)
        return _ORDERED[self.sign](str(value), self.wanted)  # dates in ISO 8601 sort as text


def read_condition(text: str) -> Condition:
    found = _CONDITION.fullmatch(text) if len(text) <= LONGEST else None
    if found is None or (found[1] and found[3]):
        raise BadCondition(f"{text[:80]!r} is not a condition; examples: price<20, stock=true, name~lamp, sku, !sku")
    return Condition(found[2], found[3] or "", (found[4] or "").strip(), bool(found[1]))


def has_all(conditions: Sequence[Condition], data: Mapping[str, Any]) -> bool:
    """Whether the fields of a result, or one of its rows, have all conditions."""
    if not conditions:
        return True
    fields, rows = data.get("fields"), data.get("rows")
    candidates = rows if isinstance(rows, list) else [fields] if isinstance(fields, Mapping) else []
    return any(isinstance(row, Mapping) and all(condition.holds(row) for condition in conditions) for row in candidates)


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted.casefold() == ("true" if value else "false")
    if isinstance(value, int | float):
        return _number(wanted) == value
    return str(value).casefold() == wanted.casefold()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

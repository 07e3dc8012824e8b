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


class _Values:
    """The values of one field of a row. They are prepared once for all conditions: a result may have 100,000 rows."""

    __slots__ = ("_folded", "_numbers", "_texts", "all")

    def __init__(self, value: Any) -> None:
        self.all: list[Any] = value if isinstance(value, list) else [] if value is None else [value]
        self._folded: list[str] | None = None
        self._texts: list[str] | None = None
        self._numbers: list[int | float] = []

    def folded(self) -> list[str]:
        """All values as texts, without case."""
        if self._folded is None:
            self._folded = [str(each).casefold() for each in self.all]
        return self._folded

    def texts_and_numbers(self) -> tuple[list[str], list[int | float]]:
        """The values that are compared as texts, and those that are compared as numbers."""
        if self._texts is None:
            self._texts = [str(each).casefold() for each in self.all if not _is_number(each)]
            self._numbers = [each for each in self.all if _is_number(each)]
        return self._texts, self._numbers


_NOTHING: Final = _Values(None)


class _Test:
    """A condition, prepared for many rows."""

    __slots__ = ("_condition", "_folded", "_number")

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._folded = condition.wanted.casefold()
        self._number = _number(condition.wanted)

    def holds(self, values: _Values) -> bool:
        sign = self._condition.sign
        if sign == "~":
            folded, wanted = values.folded(), self._folded
            return wanted in folded[0] if len(folded) == 1 else any(wanted in each for each in folded)
        if not sign:
            return bool(values.all) != self._condition.negated
        if sign in ("=", "!="):
            texts, numbers = values.texts_and_numbers()
            return (self._folded in texts or self._number in numbers) == (sign == "=")
        return any(self._is_ordered(each, _ORDERED[sign]) for each in values.all)

    def _is_ordered(self, value: Any, compare: Callable[[Any, Any], bool]) -> bool:
        if isinstance(value, bool):
            return False
        if _is_number(value):
            return self._number is not None and compare(value, self._number)
        return compare(str(value), self._condition.wanted)  # dates in ISO 8601 sort as text


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
    tests: dict[str, list[_Test]] = {}
    for condition in dict.fromkeys(conditions):
        tests.setdefault(condition.field, []).append(_Test(condition))
    return any(isinstance(row, Mapping) and _passes(tests, row) for row in candidates)


def _passes(tests: Mapping[str, Sequence[_Test]], row: Mapping[str, Any]) -> bool:
    for field, some in tests.items():
        value = row.get(field)
        values = _NOTHING if value is None else _Values(value)
        for test in some:
            if not test.holds(values):
                return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

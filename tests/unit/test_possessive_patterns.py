"""Python before 3.11.5 matches a possessive group wrongly if it contains a choice, for example `(?:ab?c)*+`.

Debian 12 has such a Python. So our patterns use possessive quantifiers only for single characters, such as `[^<]*+`.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import silkline

SINGLE = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY, _constants.CATEGORY}


def possessive_groups(parsed: Any) -> Iterator[Any]:
    """The parts of a parsed pattern that the old versions may match wrongly."""
    for operator, argument in parsed:
        if operator is _constants.POSSESSIVE_REPEAT:
            inside = list(argument[2])
            if len(inside) != 1 or inside[0][0] not in SINGLE:
                yield argument
        elif operator is _constants.ATOMIC_GROUP:
            yield argument
        for part in argument if isinstance(argument, (tuple, list)) else [argument]:
            several = part if isinstance(part, list) else [part]
            for each in several:
                if isinstance(each, _parser.SubPattern):
                    yield from possessive_groups(each)


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    for module in pkgutil.walk_packages(silkline.__path__, "silkline."):
        if module.name.endswith("__main__"):
            continue
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}.{name}", value


def test_no_pattern_has_a_possessive_group() -> None:
    found = dict(patterns())
    assert len(found) > 50
    wrong = [
        name
        for name, pattern in found.items()
        if any(possessive_groups(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)))
    ]
    assert wrong == []


@pytest.mark.parametrize("pattern", ["(?:ab?c)*+", "x(?:ab|c)++", "(?>ab|c)", "(?:(?:ab|c)?+d)*", "(?=(?:ab|c)++)"])
def test_this_test_sees_such_groups(pattern: str) -> None:
    assert any(possessive_groups(_parser.parse(pattern)))

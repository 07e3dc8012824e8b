"""One setting: its default, its description and its bounds, and how its value is read from a text or a TOML file.

This does not use pydantic: the settings are the first thing that every process reads, and building a model of pydantic
took more than half of the CPU time of a whole `jobs ls`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from silkline.model.duration import seconds_of

_TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE: Final = frozenset({"0", "false", "f", "no", "n", "off"})
_DAY: Final = 86_400


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is known about a setting. `type` is the name of its type."""

    name: str
    type: str
    default: Any
    description: str
    least: float | None
    above: float | None
    most: float | None
    choices: tuple[str, ...]

    def read(self, value: Any) -> Any:
        """The value with its type. `ValueError`: what is wrong with it, without the value of a text."""
        if self.choices:
            return self._chosen(value)
        found = _READERS[self.type](self.name, value)
        if self.least is not None and not found >= self.least:
            raise ValueError(f"must be greater than or equal to {self.least:g}")
        if self.above is not None and not found > self.above:
            raise ValueError(f"must be greater than {self.above:g}")
        if self.most is not None and not found <= self.most:
            raise ValueError(f"must be less than or equal to {self.most:g}")
        return found

    def _chosen(self, value: Any) -> str:
        if value not in self.choices:
            raise ValueError(f"must be one of {', '.join(choice for choice in self.choices if choice)}")
        return str(value)


def setting(
    default: Any,
    description: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of the settings. A default that can be called makes the value."""
    known = {"description": description, "least": ge, "above": gt, "most": le, "choices": choices}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=known)
    return dataclasses.field(default=default, metadata=known)


def settings_of(table: type[Any]) -> dict[str, Setting]:
    """The settings of a dataclass, by name."""
    return {
        field.name: Setting(field.name, str(field.type), field.default, **field.metadata)
        for field in dataclasses.fields(table)
    }


def _integer(name: str, value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise ValueError("must be a valid integer") from None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a valid integer")
    return value


def _number(name: str, value: Any) -> float:
    """Every number that is no integer may be a text with units, such as 90s or 10m."""
    if isinstance(value, str):
        if name.endswith("_days") and not value.strip()[-1:].isalpha():  # here a number without a unit means days
            return seconds_of(value)
        return seconds_of(value) / (_DAY if name.endswith("_days") else 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a valid number")
    return float(value)


def _switch(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, str | int) else ""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError("must be true or false")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, str | Path):
        raise ValueError("must be a path")
    return Path(value)


def _names(name: str, value: Any) -> tuple[str, ...]:
    """Several texts, or one with commas between them."""
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(",") if each.strip())
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError("must be a list of texts")
    return tuple(value)


_READERS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "int": _integer,
    "float": _number,
    "bool": _switch,
    "str": _text,
    "Path": _path,
    "tuple[str, ...]": _names,
}

"""The fields of a job as lines of text, for the form: `name = selector`, `name:type = selector`, or `name = {JSON}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from silkline.model.fields import MOST_FIELDS, BadFields, as_table, inline_field, read_fields


class BadLine(ValueError):
    """What is wrong with one line, with its number."""


def read_lines(text: str) -> dict[str, Any]:
    """The fields in these lines. Raises `BadLine`."""
    table: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            name, value = _written(line)
        except BadFields as error:
            raise BadLine(f"Line {number}: {error.problems[0][1]}") from None
        if name in table:
            raise BadLine(f"Line {number}: there is a field {name[:80]!r} already")
        if len(table) == MOST_FIELDS:
            raise BadLine(f"Line {number}: there may be at most {MOST_FIELDS} fields")
        table[name], numbers[name[:80]] = value, number
    try:
        return as_table(read_fields(table))  # all at once: together they must not be too large
    except BadFields as error:
        place, words = error.problems[0]
        number = numbers.get(place) or numbers.get(place.partition(".")[0], 0)
        raise BadLine(f"Line {number}: {words}" if number else f"The fields {words}") from None


def as_lines(table: Mapping[str, Any]) -> str:
    """The lines that give these fields."""
    return "\n".join(_line(name, value) for name, value in table.items())


def _field(line: str) -> tuple[str, Any]:
    name, value = _written(line)
    return name, as_table(read_fields({name: value}))[name]


def _written(line: str) -> tuple[str, Any]:
    """The name and the value of a line, as they are written."""
    head, equals, selector = line.partition("=")
    if equals and selector.strip().startswith("{"):
        try:
            return head.strip(), json.loads(selector)
        except (ValueError, RecursionError) as error:
            raise BadFields([("", f"what follows the = is not JSON: {error}")]) from None
    return inline_field(line)


def _line(name: str, value: Mapping[str, Any]) -> str:
    """The short form of a field, if it has one."""
    source = next(iter(value))
    kind = f":{value['type']}" if "type" in value else ""
    for prefix in ("", f"{source}:", f"{source.replace('_', '-')}:"):
        line = f"{name}{kind} = {prefix}{value[source]}"
        try:
            if _field(line) == (name, value):
                return line
        except BadFields:
            continue
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"

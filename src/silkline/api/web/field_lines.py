"""The fields of a job as lines of text, for the form: `name = selector`, `name:type = selector`, or `name = {JSON}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from silkline.model.fields import BadFields, as_table, inline_field, read_fields


class BadLine(ValueError):
    """What is wrong with one line, with its number."""


def read_lines(text: str) -> dict[str, Any]:
    """The fields in these lines. Raises `BadLine`."""
    table: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            name, value = _field(line)
        except BadFields as error:
            raise BadLine(f"Line {number}: {error.problems[0][1]}") from None
        if name in table:
            raise BadLine(f"Line {number}: there is a field {name[:80]!r} already")
        table[name] = value
    return table


def as_lines(table: Mapping[str, Any]) -> str:
    """The lines that give these fields."""
    return "\n".join(_line(name, value) for name, value in table.items())


def _field(line: str) -> tuple[str, Any]:
    head, equals, selector = line.partition("=")
    if equals and selector.strip().startswith("{"):
        try:
            name, value = head.strip(), json.loads(selector)
        except (ValueError, RecursionError) as error:
            raise BadFields([("", f"what follows the = is not JSON: {error}")]) from None
    else:
        name, value = inline_field(line)
    return name, as_table(read_fields({name: value}))[name]


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

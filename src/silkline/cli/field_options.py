"""The options that say what to take from pages: fields, facts and their HTML. Reads the files that describe fields."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click

from silkline.cli.session import Command, text
from silkline.errors import UsageError
from silkline.model.fields import BadFields, as_table, inline_field, read_fields
from silkline.model.spec import Fact

KEYS = ("each", "fields")
LARGEST = 1 << 20

_OPTIONS = (
    click.option(
        "--fields",
        metavar="FILE",
        type=text,
        help="Take the fields that this TOML or JSON file describes from each page.",
    ),
    click.option(
        "--field",
        "field",
        metavar="NAME=SELECTOR",
        type=text,
        multiple=True,
        help="Take this field from each page: name='h1::text', price:price=.price, sku=json-ld:Product.sku.",
    ),
    click.option(
        "--each", metavar="CSS", type=text, help="Each element that this selector finds is a row with the fields."
    ),
    click.option(
        "--require-fields",
        metavar="SHARE",
        type=float,
        help="Fail if a field is found on a smaller share of the pages, for example 0.9.",
    ),
    click.option(
        "--facts",
        type=click.Choice(get_args(Fact), case_sensitive=False),
        multiple=True,
        help="Keep more facts of each page; can be repeated.",
    ),
)
keep_html_option = click.option(
    "--keep-html", is_flag=True, help="Also keep the HTML of each page, compressed, for `silkline extract`."
)


def field_options(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def with_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the fields of the file and of `--field` as one table."""
    options = dict(given)
    file, inline = options.pop("fields"), options.pop("field")
    table: dict[str, Any] = {}
    if file is not None:
        described = read_file(file)
        table = described["fields"]
        if options["each"] is None:
            options["each"] = described.get("each")
    try:
        added = dict(map(inline_field, inline))
        table |= as_table(read_fields(added))
    except BadFields as error:
        raise UsageError("; ".join(_option_words(*problem) for problem in error.problems)) from None
    if table:
        options["fields"] = table
    return options


def read_file(name: str) -> dict[str, Any]:
    """The checked content of a file that describes fields: `fields`, and perhaps `each`."""
    described = _loaded(name)
    if not isinstance(described, dict):
        raise UsageError(f"{name}: it must be a table with the key fields")
    for key in described:
        if key not in KEYS:
            hint = " (put the fields into the table [fields])" if "fields" not in described else ""
            raise UsageError(f"{name}: unknown key {key!r}; known are {' and '.join(KEYS)}{hint}")
    each = described.get("each")
    if each is not None and not isinstance(each, str):
        raise UsageError(f"{name}: each: must be a CSS selector")
    try:
        table = as_table(read_fields(described.get("fields", {}), each))
    except BadFields as error:
        raise UsageError("; ".join(f"{name}: {_words(*problem)}" for problem in error.problems)) from None
    if not table:
        raise UsageError(f"{name}: it describes no field")
    return {"fields": table, **({"each": each} if each is not None else {})}


def _loaded(name: str) -> Any:
    try:
        source = Path(name).read_bytes()[: LARGEST + 1]
        if len(source) > LARGEST:
            raise UsageError(f"{name} is larger than {LARGEST >> 20} MiB")
        decoded = source.decode()
        return json.loads(decoded) if name.lower().endswith(".json") else tomllib.loads(decoded)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # tomllib and json name the line
        raise UsageError(f"{name}: {error}") from None


def _option_words(place: str, message: str) -> str:
    return f"--{_words(place, message)}" if place else f"--field {message}"


def _words(place: str, message: str) -> str:
    field, _, key = place.partition(".")
    if not place:
        return message
    if place == "each":
        return f"each: {message}"
    return f"field {field}, {key}: {message}" if key else f"field {field}: {message}"

"""`silkline config`: each setting, its value, and the source of the value."""

from __future__ import annotations

from typing import Any

import click

from silkline.cli import terminal
from silkline.cli.resources import loaded
from silkline.cli.session import Session, everywhere
from silkline.config import SECRET, SETTINGS, Loaded
from silkline.model.secret_url import HIDDEN, masked


@click.command()
@everywhere()
@click.pass_obj
def config(session: Session) -> None:
    """Show each setting, its value and the source of the value.

    The order is: command line, environment (SILKLINE_ and the name in capitals), silkline.toml in the current
    directory, default. The first one that has a value is used.
    """
    found = loaded(session)
    if session.json:
        terminal.print_json([_describe(found, name) for name in SETTINGS])
        return
    described = (_describe(found, name) for name in SETTINGS)
    rows = ((each["name"], _text(each["value"]), each["source"]) for each in described)
    terminal.table(("SETTING", "VALUE", "FROM"), rows)


def _describe(found: Loaded, name: str) -> dict[str, Any]:
    value = getattr(found.settings, "database" if name == "database_url" else name)
    if name in SECRET:
        value = HIDDEN if value else ""
    elif name.endswith("_url"):
        value = masked(value)
    elif isinstance(value, tuple):
        value = ",".join(value)
    elif not isinstance(value, bool | int | float):
        value = str(value)
    source = found.sources[name]
    if source == "environment":
        source = f"environment, {found.variables[name]}"
    return {"name": name, "value": value, "source": source, "description": SETTINGS[name].description}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or "-"

"""Writes docs/reference from the program itself: every command, option, exit code and setting.

`python docs/generate.py` writes the files; tests/acceptance/test_reference.py fails when they are out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from pydantic_core import PydanticUndefined

from silkline.cli import codes
from silkline.cli.group import silkline
from silkline.config import ALIASES, FILE, PREFIX, Settings

FOLDER = Path(__file__).parent / "reference"
MADE = "<!-- Written by docs/generate.py; change the program, then run it again. -->"


def main() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


def pages() -> dict[str, str]:
    """Each file of docs/reference with its text."""
    return {"cli.md": "\n".join(_cli()) + "\n", "settings.md": "\n".join(_settings()) + "\n"}


def _cli() -> Iterator[str]:
    yield from ("# The command line", "", MADE, "")
    yield "Data goes to stdout, messages to stderr. The options of `silkline` itself may also stand after a command."
    yield "A job is named by its id, the first characters of its id, or `last` for the newest."
    yield from ("", "## Exit codes", "")
    yield from (line for line in (codes.__doc__ or "").splitlines() if line.startswith("|"))
    context = click.Context(silkline, info_name="silkline", help_option_names=["-h", "--help"])
    for command, inner in _commands(silkline, context):
        yield from _command(command, inner)


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _commands(found, click.Context(found, info_name=name, parent=context))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from ("", f"## `{context.command_path}`", "", "```", usage, "```", "")
    yield " ".join((command.help or "").split())
    records = [record for option in command.get_params(context) if (record := option.get_help_record(context))]
    if records:
        yield from ("", "| option | |", "|---|---|")
        yield from (f"| `{names}` | {_cell(help)} |" for names, help in records)
    if isinstance(command, click.Group):
        yield from ("", "| command | |", "|---|---|")
        for name in sorted(command.list_commands(context)):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                link = f"{context.command_path} {name}".replace(" ", "-")
                yield f"| [`{name}`](#{link}) | {_cell(found.get_short_help_str(200))} |"


def _settings() -> Iterator[str]:
    yield from ("# The settings", "", MADE, "")
    yield f"A setting is taken from the command line, else from the environment (`{PREFIX}` and its name in capitals),"
    yield f"else from `{FILE}` in the current directory (`slots = 4`), else it has its default. `silkline config` shows"
    yield "each value and where it came from. Times are in seconds, or have units (`90s`, `10m`, `2h`, `1d`); sizes are"
    yield "in bytes."
    yield from ("", "| setting | default | variable | |", "|---|---|---|---|")
    for name, field in Settings.model_fields.items():
        variables = f"`{PREFIX}{name.upper()}`" + (f" or `{ALIASES[name]}`" if name in ALIASES else "")
        default = "" if field.default is PydanticUndefined or field.default == "" else f"`{_default(field.default)}`"
        yield f"| `{name}` | {default} | {variables} | {_cell(field.description or '')} |"


def _default(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()

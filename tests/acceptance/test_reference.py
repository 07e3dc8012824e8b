"""The reference in docs/ is the program's own: nothing in it is missing, out of date, or without a word of help."""

import runpy

import click
import pytest

from silkline.cli.group import LazyGroup, silkline
from silkline.config import SETTINGS
from tests.acceptance.conftest import ROOT

PAGES: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
EVERYWHERE = {"--json", "--data", "--database-url", "--verbose", "--quiet"}


def every_command() -> list[tuple[str, click.Command, click.Context]]:
    found = []

    def walk(command: click.Command, context: click.Context) -> None:
        found.append((context.command_path, command, context))
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None, name
                walk(inner, click.Context(inner, info_name=name, parent=context))

    walk(silkline, click.Context(silkline, info_name="silkline"))
    return found


COMMANDS = every_command()
LEAVES = [(path, command) for path, command, _ in COMMANDS if not isinstance(command, click.Group)]


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_is_up_to_date(page: str) -> None:
    stored = (ROOT / "docs" / "reference" / page).read_text()
    assert stored == PAGES[page], "run `python docs/generate.py`"


@pytest.mark.parametrize(("path", "command", "context"), COMMANDS, ids=[path for path, _, _ in COMMANDS])
def test_every_command_and_option_has_its_words(path: str, command: click.Command, context: click.Context) -> None:
    assert command.help
    text = PAGES["cli.md"]
    assert f"## `{path}`\n" in text
    section = text.split(f"## `{path}`\n")[1].split("\n## ")[0]
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name
            assert option.opts[-1] in section


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[path for path, _ in LEAVES])
def test_every_command_takes_the_options_that_stand_everywhere(path: str, command: click.Command) -> None:
    assert {option.opts[-1] for option in command.params} >= EVERYWHERE


def test_the_help_lists_every_command_once_in_its_part() -> None:
    (context,) = (context for path, _, context in COMMANDS if path == "silkline")
    parts = silkline.get_help(context).split("Options:")[1].split("\n\n")
    titles = [part.splitlines()[0].rstrip(":") for part in parts[1:-1]]
    assert isinstance(silkline, LazyGroup)
    assert titles == list(silkline.sections.values())
    listed = [line.split()[0] for part in parts[1:-1] for line in part.splitlines()[1:] if line[2:3].strip()]
    assert listed == silkline.list_commands(context)


def test_examples_keep_their_lines() -> None:
    assert "\n```\nsilkline https://example.com/    " in PAGES["cli.md"]


def test_the_words_in_the_list_of_commands_are_those_of_the_commands() -> None:
    for path, command, context in COMMANDS:
        if isinstance(command, LazyGroup):
            for name, lazy in command.lazy.items():
                inner = command.get_command(context, name)
                assert inner is not None
                assert inner.get_short_help_str(200) == lazy.help, f"{path} {name}"


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_described(name: str) -> None:
    assert SETTINGS[name].description
    assert f"| `{name}` |" in PAGES["settings.md"]

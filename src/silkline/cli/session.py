"""The options that every command has, and the messages of a command.

Every start of the program imports this module, so it must import little: settings and database are in `resources`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from silkline.cli import terminal

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
MESSAGES = "silkline.command"  # the logger of messages in a log of JSON lines
Command = TypeVar("Command", bound=Callable[..., Any])


class Session:
    """One run of the program."""

    def __init__(self) -> None:
        self.overrides: dict[str, Any] = {}
        self.json = False
        self.verbose = False
        self.quiet = False
        self.logs_json = False
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """Print a message to stderr, except with --quiet. In a log of JSON lines it is one of them."""
        if self.quiet:
            return
        if self.logs_json:
            import logging  # most commands do not need it

            logging.getLogger(MESSAGES).info("%s", text)
        else:
            terminal.message(text)

    def say_once(self, text: str) -> None:
        """Print a message only once, even if the settings are read again."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)


def text(value: str) -> str:
    """The type of an argument that goes into the database: refuse bytes that are not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise click.BadParameter("it is not UTF-8.") from error
    return value


def everywhere(*, shown: bool = False) -> Callable[[Command], Command]:
    """The options that are allowed before and after any command; only the help of `silkline` lists them all."""

    def decorate(command: Command) -> Command:
        for name, metavar, help in (
            ("--database-url", "URL", "Use this database: sqlite:///PATH or postgresql://USER@HOST/NAME."),
            ("--data", "DIR", "Keep the embedded database and the files of jobs in this directory."),
        ):
            command = click.option(
                name, metavar=metavar, type=text, help=help, hidden=not shown, expose_value=False, callback=_override
            )(command)
        for name, values, help in (
            ("--log-format", LOG_FORMATS, "Write log lines as text, or as JSON with one object per line."),
            ("--log-level", LOG_LEVELS, "Write log lines of this level and above to stderr."),
        ):
            command = click.option(
                name, type=click.Choice(values), help=help, hidden=not shown, expose_value=False, callback=_override
            )(command)
        for names, help in (
            (("-q", "--quiet"), "Print only errors to stderr."),
            (("-v", "--verbose"), "Print more log lines, and a traceback with an error."),
        ):
            command = click.option(
                *names, is_flag=True, help=help, hidden=not shown, expose_value=False, callback=_switch
            )(command)
        return click.option("--json", is_flag=True, help="Print JSON.", expose_value=False, callback=_switch)(command)

    return decorate


def _override(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(Session).overrides[str(parameter.name)] = value


def _switch(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        setattr(context.ensure_object(Session), str(parameter.name), True)

"""Runs a command and returns its exit code. Only this module turns errors into a line on stderr and an exit code."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence

import click

from silkline.cli import codes, terminal
from silkline.cli.group import silkline
from silkline.cli.session import Session
from silkline.errors import SilklineError
from silkline.model.redaction import without_password

PROGRAM = "silkline"


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    terminal.prepare()
    session = Session()
    try:
        code = _invoke(list(arguments) or ["--help"], session)
        terminal.flush()
        return code
    except click.exceptions.NoArgsIsHelpError as error:
        terminal.message(error.format_message())
        return codes.USAGE
    except click.UsageError as error:
        terminal.complain(f"{_plain(error.format_message())}{_where_to_look(error)}")
        return codes.USAGE
    except SilklineError as error:
        terminal.complain(without_password(str(error)))
        if session.verbose:
            terminal.message(terminal.safe_lines(without_password("".join(traceback.format_exception(error)))))
        return codes.of_error(error)
    except BrokenPipeError:
        terminal.forget_output()
        return codes.NO_READER
    except (KeyboardInterrupt, click.Abort):
        return codes.INTERRUPTED
    except terminal.OutputLost as error:
        terminal.forget_output()
        terminal.complain(str(error))
        return codes.FAILED


def _invoke(arguments: list[str], session: Session) -> int:
    if os.environ.get("_SILKLINE_COMPLETE"):
        silkline.main(prog_name=PROGRAM)  # shell completion
    try:
        with silkline.make_context(PROGRAM, arguments, obj=session) as context:
            code = silkline.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return code if isinstance(code, int) else codes.OK


def _plain(message: str) -> str:
    """Click names its own types: a number with limits is an `integer range`."""
    return message.replace("a valid integer range", "a valid integer").replace("a valid float range", "a valid number")


def _where_to_look(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else PROGRAM
    return f" (see `{path} --help`)"

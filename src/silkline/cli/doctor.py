"""`silkline doctor`: check that everything that Silkline needs is there, and say what to do if not."""

from __future__ import annotations

import dataclasses

import click

from silkline.cli import checks, terminal
from silkline.cli.resources import loaded, settings_of
from silkline.cli.session import Session, everywhere
from silkline.errors import Unavailable


@click.command()
@everywhere()
@click.pass_obj
def doctor(session: Session) -> int:
    """Check this machine and the database; say what to do.

    It changes nothing. The exit code is 1 if a check fails; a warning is not a failure.
    """
    found = []
    try:
        settings = settings_of(session)
    except Unavailable:  # one of the checks reports it
        settings = loaded(session).settings
    for check in checks.every(settings):
        found.append(check)
        if not session.json:
            _print(check)
    if session.json:
        terminal.print_json([dataclasses.asdict(check) for check in found])
    return int(any(check.level == checks.FAIL for check in found))


def _print(check: checks.Check) -> None:
    level = terminal.coloured(check.level.ljust(4), check.level)
    terminal.line(f"{level}  {check.name}: {terminal.safe(check.says)}")
    if check.advice:
        terminal.line(f"      {terminal.safe(check.advice)}")

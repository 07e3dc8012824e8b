"""The options for files of rendered pages, and what a command says about the files."""

from __future__ import annotations

from pathlib import Path

import click

from silkline.cli import terminal
from silkline.cli.session import Command, Session
from silkline.page_files import files_named, stored_files
from silkline.store.results import Result

_OPTIONS = (
    click.option(
        "--screenshot",
        type=click.Choice(["full", "viewport"], case_sensitive=False),
        help="Also keep a picture of each rendered page: the whole page, or its top. Needs --render.",
    ),
    click.option("--pdf", is_flag=True, help="Also keep each rendered page as a PDF. Needs --render."),
)


def page_file_options(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def say_files(session: Session, data: Path, result: Result) -> None:
    """Say where the files of a page are, or why one is missing."""
    for name, note in files_named(result.metadata).items():
        if note.error:
            session.say(f"No {name}: {terminal.safe(note.error)}.")
    for name, path in stored_files(data, result.job_id, result.url_id, result.metadata).items():
        session.say(f"{name}: {terminal.safe(str(path))}")

"""`silkline db`: care for the database. Every command brings it up to date by itself; this one says what it did."""

from __future__ import annotations

import click

from silkline.cli import terminal
from silkline.cli.resources import settings_of
from silkline.cli.session import Session, everywhere
from silkline.model.secret_url import masked
from silkline.store import migrate
from silkline.store.opening import open_database


@click.group()
def db() -> None:
    """Care for the database."""


@db.command()
@everywhere()
@click.pass_obj
def upgrade(session: Session) -> None:
    """Bring the tables of the database up to date. Data stays."""
    settings = settings_of(session)
    database = open_database(settings.database, upgrade=False)
    try:
        before, after = migrate.upgrade(database)
    finally:
        database.close()
    if session.json:
        terminal.print_json({"database": masked(settings.database), "before": before, "after": after})
    moved = f"went from schema revision {before} to {after}" if before < after else f"is at schema revision {after}"
    session.say(f"The database {terminal.safe(masked(settings.database))} {moved}.")

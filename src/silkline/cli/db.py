"""`silkline db`: maintain the database. Every command upgrades it when needed; `upgrade` also prints what it did."""

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
    """Maintain the database."""


@db.command()
@everywhere()
@click.pass_obj
def upgrade(session: Session) -> None:
    """Upgrade the tables of the database. No data is lost."""
    settings = settings_of(session)
    database = open_database(settings.database, upgrade=False)
    try:
        before, after = migrate.upgrade(database)
    finally:
        database.close()
    if session.json:
        terminal.print_json({"database": masked(settings.database), "before": before, "after": after})
    moved = (
        f"was upgraded from schema revision {before} to {after}" if before < after else f"is at schema revision {after}"
    )
    session.say(f"The database {terminal.safe(masked(settings.database))} {moved}.")

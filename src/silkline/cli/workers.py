"""`silkline workers`: list the workers that are alive."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import click

from silkline.cli import terminal
from silkline.cli.resources import existing, settings_of
from silkline.cli.session import Session, everywhere
from silkline.cli.terminal import duration
from silkline.config import Settings
from silkline.model.database import Database
from silkline.store.identity import is_dead
from silkline.store.workers import Worker, alive


@click.command()
@everywhere()
@click.pass_obj
def workers(session: Session) -> None:
    """Show which workers are alive."""
    settings = settings_of(session)
    with existing(settings) as database:
        found = living(database, settings) if database else []
        now = database.now() if database else datetime.now(UTC)
    if session.json:
        terminal.print_json([{**dataclasses.asdict(one), "alive": True} for one in found])
    elif found:
        head = ("ID", "HOST", "PID", "STATE", "JOBS", "SEEN", "AGE", "VERSION")
        terminal.table(head, (_row(one, now) for one in found))
    else:
        session.say("No worker is alive; start one with `silkline worker`.")


def living(database: Database, settings: Settings) -> list[Worker]:
    """The workers seen within `stale_after`, without those of this machine whose process is dead."""
    found = alive(database, settings.stale_after)
    return [one for one in found if not is_dead(settings.data, one.id, pid=one.pid, born_in=one.boot_id)]


def _row(one: Worker, now: datetime) -> list[str]:
    seen, age = duration(now - one.last_seen), duration(now - one.started_at)
    return [one.id, one.host, str(one.pid), one.state, f"{one.jobs_held}/{one.slots}", seen, age, one.version]

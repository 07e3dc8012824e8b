"""`silkline workers`: who is there to run jobs."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import click

from silkline.cli import terminal
from silkline.cli.resources import existing, settings_of
from silkline.cli.session import Session, everywhere
from silkline.cli.terminal import duration
from silkline.store.workers import Worker, everyone


@click.command()
@everywhere()
@click.pass_obj
def workers(session: Session) -> None:
    """Show which supervisors are alive."""
    settings = settings_of(session)
    with existing(settings) as database:
        found = everyone(database) if database else []
        now = database.now() if database else datetime.now(UTC)
    alive_since = now - timedelta(seconds=settings.stale_after)
    if session.json:
        terminal.print_json([{**dataclasses.asdict(one), "alive": one.last_seen > alive_since} for one in found])
    elif found:
        rows = (_row(one, now, alive=one.last_seen > alive_since) for one in found)
        head = ("ID", "HOST", "PID", "LIFE", "STATE", "JOBS", "SEEN", "AGE", "VERSION")
        terminal.table(head, rows, status=3)
    else:
        session.say("No worker is alive; start one with `silkline worker`.")


def _row(one: Worker, now: datetime, *, alive: bool) -> list[str]:
    life, held = "alive" if alive else "silent", f"{one.jobs_held}/{one.slots}"
    seen, age = duration(now - one.last_seen), duration(now - one.started_at)
    return [one.id, one.host, str(one.pid), life, one.state, held, seen, age, one.version]

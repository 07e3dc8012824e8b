"""`silkline workers`: who is there to run jobs."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import click

from silkline.cli import terminal
from silkline.cli.resources import opened, settings_of
from silkline.cli.session import Session, everywhere
from silkline.cli.terminal import duration
from silkline.store.workers import everyone


@click.command()
@everywhere()
@click.pass_obj
def workers(session: Session) -> None:
    """Show which supervisors are alive."""
    settings = settings_of(session)
    with opened(settings) as database:
        found, now = everyone(database), database.now()
    alive_since = now - timedelta(seconds=settings.stale_after)
    if session.json:
        terminal.print_json([{**dataclasses.asdict(one), "alive": one.last_seen > alive_since} for one in found])
    elif found:
        rows = (
            (one.id, one.host, str(one.pid), "alive" if one.last_seen > alive_since else "silent", one.state)
            + (
                f"{one.jobs_held}/{one.slots}",
                duration(now - one.last_seen),
                duration(now - one.started_at),
                one.version,
            )
            for one in found
        )
        head = ("ID", "HOST", "PID", "LIFE", "STATE", "JOBS", "SEEN", "AGE", "VERSION")
        terminal.table(head, rows, status=3)
    else:
        session.say("No worker is alive; start one with `silkline worker`.")

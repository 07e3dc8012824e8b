"""`silkline worker`: a supervisor, until it is told to end."""

from __future__ import annotations

import logging

import click

from silkline import log
from silkline.cli.logging_level import level_of
from silkline.cli.resources import settings_of
from silkline.cli.session import Session, everywhere
from silkline.service.supervisor import Supervisor

slots = click.option("--slots", type=click.IntRange(0, 10_000), help="Jobs it runs at once. Default: a setting.")


@click.command()
@slots
@everywhere()
@click.pass_obj
def worker(session: Session, slots: int | None) -> int:
    """Run a supervisor: it claims jobs and watches over them.

    SIGTERM or Ctrl-C: running jobs save a checkpoint and go back to the queue. A second one: at once. SIGHUP: read the
    number of slots again.
    """
    return _supervise(session, slots)


def _supervise(session: Session, slots: int | None) -> int:
    if slots is not None:
        session.overrides["slots"] = slots
    settings = settings_of(session)
    log.set_up(level_of(session, settings, usual=logging.INFO, quiet=logging.WARNING))
    return Supervisor(settings, reload=lambda: settings_of(session)).run()

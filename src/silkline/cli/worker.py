"""`silkline worker`: run a supervisor until a signal ends it."""

from __future__ import annotations

import logging

import click

from silkline import log
from silkline.cli.logging_level import level_of
from silkline.cli.resources import settings_of
from silkline.cli.session import Session, everywhere
from silkline.service.supervisor import Supervisor

slots = click.option(
    "--slots", type=click.IntRange(0, 10_000), help="How many jobs to run at the same time. Default: the setting slots."
)


@click.command()
@slots
@everywhere()
@click.pass_obj
def worker(session: Session, slots: int | None) -> int:
    """Run a worker: it claims jobs and runs them.

    At SIGTERM or Ctrl-C, running jobs save a checkpoint and go back to the queue. A second signal ends at once. SIGHUP
    reads the number of slots again.
    """
    return _supervise(session, slots)


def _supervise(session: Session, slots: int | None) -> int:
    if slots is not None:
        session.overrides["slots"] = slots
    settings = settings_of(session)
    log.set_up(level_of(session, settings, usual=logging.INFO, quiet=logging.WARNING))
    return Supervisor(settings, reload=lambda: settings_of(session)).run()

"""`silkline worker`: run a supervisor until a signal ends it."""

from __future__ import annotations

import logging

import click

from silkline import log
from silkline.api import address
from silkline.cli.logging_level import level_of
from silkline.cli.resources import settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.service.metrics_server import MetricsListener
from silkline.service.supervisor import Supervisor

slots = click.option(
    "--slots", type=click.IntRange(0, 10_000), help="How many jobs to run at the same time. Default: the setting slots."
)


@click.command()
@slots
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    help="Serve /metrics, /healthz and /readyz at this port; 0 is any free port. Default: they are not served.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    type=text,
    help="The address for --metrics-port. Default: 127.0.0.1, this machine only.",
)
@everywhere()
@click.pass_obj
def worker(session: Session, slots: int | None, metrics_port: int | None, metrics_host: str) -> int:
    """Run a worker: it claims jobs and runs them.

    At SIGTERM or Ctrl-C, running jobs save a checkpoint and go back to the queue. A second signal ends at once. SIGHUP
    reads the number of slots again.
    """
    if slots is not None:
        session.overrides["slots"] = slots
    settings = settings_of(session)
    log.set_up(level_of(session, settings, usual=logging.INFO, quiet=logging.WARNING))
    listener = None
    if metrics_port is not None:
        listener, bound = address.listen(metrics_host, metrics_port, settings, option="metrics-")
        session.say(f"Its metrics are at {address.url(metrics_host, bound)}metrics")
    token = "" if address.is_loopback(metrics_host) else settings.api_token
    metrics = None if listener is None else MetricsListener(listener, token)
    return Supervisor(settings, reload=lambda: settings_of(session), metrics=metrics).run()

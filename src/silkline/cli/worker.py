"""`silkline worker`: run a supervisor until a signal ends it."""

from __future__ import annotations

import logging

import click

from silkline.api import address
from silkline.cli.logging_level import start_log
from silkline.cli.resources import settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.config import Settings
from silkline.service.metrics_server import MetricsListener
from silkline.service.supervisor import Supervisor

slots = click.option(
    "--slots", type=click.IntRange(0, 10_000), help="How many jobs to run at the same time. Default: the setting slots."
)


@click.command()
@slots
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65_535),
    help="Serve /metrics, /healthz and /readyz at this port. Default: the setting metrics_port.",
)
@click.option(
    "--metrics-host",
    type=text,
    help="The address for --metrics-port. Default: the setting metrics_host, 127.0.0.1, this machine only.",
)
@everywhere()
@click.pass_obj
def worker(session: Session, slots: int | None, metrics_port: int | None, metrics_host: str | None) -> int:
    """Run a worker: it claims jobs and runs them.

    At SIGTERM or Ctrl-C, running jobs save a checkpoint and go back to the queue. A second signal ends at once. SIGHUP
    reads the number of slots again.
    """
    given = {"slots": slots, "metrics_port": metrics_port, "metrics_host": metrics_host}
    session.overrides.update({name: value for name, value in given.items() if value is not None})
    settings = settings_of(session)
    start_log(session, settings, usual=logging.INFO, quiet=logging.WARNING)
    metrics = _listen(session, settings) if settings.metrics_port else None
    return Supervisor(settings, reload=lambda: settings_of(session), metrics=metrics).run()


def _listen(session: Session, settings: Settings) -> MetricsListener:
    host = settings.metrics_host
    listener, port = address.listen(host, settings.metrics_port, settings, option="metrics-")
    session.say(f"Its metrics are at {address.url(host, port)}metrics")
    return MetricsListener(listener, "" if address.is_loopback(host) else settings.api_token)

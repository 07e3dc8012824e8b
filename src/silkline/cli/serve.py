"""`silkline serve`: run the API, the web page and a worker with one command."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from typing import Any

import click

from silkline.api import address
from silkline.cli.logging_level import start_log
from silkline.cli.resources import settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.cli.worker import slots
from silkline.config import Settings, settings_from_json
from silkline.model.secret_url import masked
from silkline.service.child_program import ChildProgram
from silkline.service.health_probe import HealthProbe
from silkline.service.supervisor import Supervisor


@click.command()
@click.option(
    "--host", default="127.0.0.1", type=text, help="The address to listen on. Default: 127.0.0.1, this machine only."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="The port to listen on; 0 is any free port. Default: 8700, or a free port if 8700 is in use.",
)
@click.option("--settings-from-stdin", is_flag=True, hidden=True)
@slots
@everywhere()
@click.pass_obj
def serve(session: Session, host: str, port: int | None, slots: int | None, settings_from_stdin: bool) -> int:
    """Run Silkline on this machine: API, web page and a worker.

    At Ctrl-C or SIGTERM, running jobs save a checkpoint and go back to the queue. A second signal ends at once.
    """
    if slots is not None:
        session.overrides["slots"] = slots
    settings = settings_from_json(sys.stdin.buffer.read()) if settings_from_stdin else settings_of(session)
    level = start_log(session, settings, usual=logging.INFO, quiet=logging.WARNING)
    listener, bound = address.listen(host, port, settings)
    with listener:
        if port is None and bound != address.PORT:
            session.say(f"Port {address.PORT} is in use; this Silkline listens on port {bound}.")
        session.say(f"Silkline is at {address.url(host, bound)}")
        session.say(_where_data_lies(settings))
        api = ChildProgram(
            "API",
            [sys.executable, "-P", "-m", "silkline.api", str(listener.fileno()), str(os.getpid()), host],
            says=_for_the_api(settings, level),
            descriptors=[listener.fileno()],
            answers=HealthProbe(
                address.url(host, bound), every=settings.api_probe_interval, limit=settings.api_hung_after
            ),
        )
        reload = None if settings_from_stdin else lambda: settings_of(session)
        return Supervisor(settings, reload=reload, child_program=api).run()


def _where_data_lies(settings: Settings) -> str:
    """Say where jobs and results are stored."""
    data = settings.data.absolute()
    if not settings.database_url:
        return f"Its data is in {data}"
    return f"Its data is in {masked(settings.database_url)}, logs and archives in {data}"


def _for_the_api(settings: Settings, level: int) -> bytes:
    """The settings of this process, with its log level."""
    name: Any = logging.getLevelName(level).lower()
    return replace(settings, log_level=name).to_json()

"""`silkline demo`: crawl the bundled sample site, offline, and show the results."""

from __future__ import annotations

import logging
import time

import click

from silkline.cli import codes, terminal, views
from silkline.cli.logging_level import log_if_asked
from silkline.cli.resources import opened, settings_of
from silkline.cli.session import Session, everywhere
from silkline.cli.terminal import safe
from silkline.errors import UsageError
from silkline.export.failed_urls import grouped
from silkline.model.database import Database
from silkline.model.job import Job, NewJob, Status
from silkline.runner.inline import run_here
from silkline.sample.server import SampleServer
from silkline.store import urls

LIMIT = 200


@click.command()
@click.option("--serve", is_flag=True, help="Only serve the sample site, until Ctrl-C.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="The port of the sample site. Default: any free port."
)
@everywhere()
@click.pass_obj
def demo(session: Session, serve: bool, port: int) -> int:
    """Crawl a small sample site on this machine and show the results."""
    try:
        server = SampleServer(port)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used: {error.strerror}") from error
    with server:
        if serve:
            return _serve(session, server)
        session.say(f"Crawling the sample site at {server.url} …")
        settings = settings_of(session)
        log_if_asked(session, settings)
        payload = {
            "url": server.url,
            "limit": LIMIT,
            "speed": "max",
            "fetchers": 1,
            "allow_private": [server.url.removeprefix("http://").rstrip("/")],
        }
        with opened(settings) as database:
            new = NewJob("site", payload, request_url=server.url)
            job = run_here(database, settings, new, logging.getLogger("silkline.job"))
            _show(session, database, job)
    return codes.OK if job.status is Status.COMPLETED else codes.FAILED


def _serve(session: Session, server: SampleServer) -> int:
    terminal.line(server.url)
    session.say("The sample site runs until you press Ctrl-C.")
    while True:
        time.sleep(3_600)


def _show(session: Session, database: Database, job: Job) -> None:
    counts, now = urls.counts(database, job.id), database.now()
    why, problems = urls.reasons(database, job.id), grouped(database, job.id)
    if session.json:
        reasons = [{"state": state, "reason": reason, "urls": number} for state, reason, number in why]
        terminal.print_json({**views.as_value(job, counts, now), "reasons": reasons})
        return
    terminal.line(f"{counts.done} pages stored in {counts.seconds:.1f} s, every URL accounted for:")
    terminal.line(f"  {counts.discovered} discovered = {views.sum_of(counts)}")
    for state in ("failed", "skipped"):
        parts = [f"{number} {safe(reason)}" for of, reason, number in why if of == state]
        if parts:
            terminal.line(f"  {state}: {', '.join(parts)}")
    terminal.line()
    terminal.line("Broken links, and the pages that contain them:")
    for problem in problems:
        for example in (each for each in problem.examples if each.source):
            terminal.line(f"  {safe(example.url)} ({safe(problem.reason.removeprefix('http_'))})")
            for source in example.links_in.sources:
                terminal.line(f"    on {safe(source.url)}")
    terminal.line()
    terminal.line("Next commands:")
    for command in ("errors last", "urls last --state skipped", "results last --format md -o tern-rock"):
        terminal.line(f"  silkline {command}")

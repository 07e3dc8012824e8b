"""Runs one job in the foreground, under its own supervisor, with a progress line on stderr, and says how it ended.

Ctrl-C pauses the job, SIGTERM puts it back into the queue. If another supervisor claimed the job first, this process
only shows its progress. Ctrl-C then asks the other supervisor to pause the job, and a second Ctrl-C ends only this
process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from silkline.cli import codes, terminal, views
from silkline.cli.logging_level import start_log
from silkline.cli.progress import Ticker
from silkline.cli.resources import opened
from silkline.cli.session import Session
from silkline.config import Settings
from silkline.model.database import Database
from silkline.model.job import ENDED, Job, Status
from silkline.model.ledger import Counts
from silkline.service.foreground_run import ForegroundRun
from silkline.store import jobs, results, urls


def run_here(
    session: Session,
    settings: Settings,
    job: Job,
    opening: str,
    done: Callable[[Database, Job], None] | None = None,
) -> int:
    """Run the job until it ends or is paused, and return the exit code.

    `opening` is printed when the signal handlers are installed: from then on Ctrl-C pauses the job. `done` is called
    with the job in its last state.
    """
    start_log(session, settings, usual=logging.WARNING, quiet=logging.ERROR)
    if not session.verbose:
        for handler in logging.getLogger().handlers:
            handler.addFilter(_is_news)
    with opened(settings) as database:
        with Ticker(database, job, quiet=session.quiet or session.logs_json):
            ForegroundRun(settings, job.id, signals_caught=lambda: session.say(opening)).run()
        job = jobs.get(database, job.id)
        counts = urls.counts(database, job.id)
        _tell(session, database, job, counts)
        if done is not None:
            done(database, job)
        _suggest(session, job, counts, saved=done is not None)
    return codes.of_status(job.status)


def _is_news(record: logging.LogRecord) -> bool:
    """Drop the log line about the failure of the job: `_tell` reports it at the end, with advice."""
    return not record.getMessage().endswith(f"the job is now {Status.FAILED}")


def _tell(session: Session, database: Database, job: Job, counts: Counts) -> None:
    """Say how the job ended; with --json, print the job."""
    why, now = urls.reasons(database, job.id), database.now()
    if session.json:
        reasons = [{"state": state, "reason": reason, "urls": number} for state, reason, number in why]
        stored = results.count(database, job.id)
        terminal.print_json({**views.as_value(job, counts, now), "reasons": reasons, "results": stored})
    for line in views.ending(job, counts, why, now):
        session.say(line)


def _suggest(session: Session, job: Job, counts: Counts, *, saved: bool) -> None:
    """Say which commands are useful next. `saved`: the results are in a file already."""
    commands = views.next_commands(job, counts, saved=saved) if job.status in ENDED else []
    for line in (["Next commands:"] if commands else []) + [f"  {command}" for command in commands]:
        session.say(line)

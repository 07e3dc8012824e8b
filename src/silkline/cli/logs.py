"""`silkline logs`: print the log of a job; with --follow, until the job ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import click

from silkline.cli import terminal
from silkline.cli.job_choice import chosen
from silkline.cli.resources import opened_to_find, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.log import JOB_LOGGER, stamp, with_values
from silkline.model.database import Database
from silkline.model.job import ENDED, Job
from silkline.store import jobs as store
from silkline.store import logs as lines

PAGE = 1_000
LOOK_AGAIN = 0.5  # seconds between two looks at the log of a running job
LATE = timedelta(seconds=3)


@click.command()
@click.argument("id", type=text)
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the job ends.")
@click.option(
    "-n", "--lines", "wanted", type=click.IntRange(1, 1_000_000), help="Start with this many of the newest lines."
)
@everywhere()
@click.pass_obj
def logs(session: Session, id: str, follow: bool, wanted: int | None) -> None:
    """Show the log of a job.

    ID is the id of a job, its first characters, or `last` for the newest job that has a log.
    """
    with opened_to_find(settings_of(session)) as database:

        def fits(job: Job) -> bool:
            return bool(lines.tail(database, job.id, 1)) or (follow and job.status not in ENDED)

        job = chosen(session, database, id, fits, "that has a log")
        for line in _lines(database, job.id, wanted, follow):
            _print(line, as_json=session.json)


def _lines(database: Database, job_id: str, wanted: int | None, follow: bool) -> Iterator[lines.LogLine]:
    newest = lines.tail(database, job_id, wanted) if wanted else []
    yield from newest
    after = newest[-1].id if newest else 0
    while True:
        # Checked before the lines are read, so that no line is missed.
        going = follow and _may_write(database, job_id)
        while page := lines.page(database, job_id, after=after, wanted=PAGE):
            yield from page
            after = page[-1].id
        if not going:
            return
        terminal.flush()
        time.sleep(LOOK_AGAIN)


def _may_write(database: Database, job_id: str) -> bool:
    """Whether new lines are possible. A supervisor stores lines in batches, the last batch after the end of the job."""
    job = store.get(database, job_id)
    ended = job.finished_at if job.status in ENDED else None
    return ended is None or database.now() - ended < LATE


def _print(line: lines.LogLine, *, as_json: bool) -> None:
    if as_json:
        ids = {"id": line.id, "job": line.job_id, "attempt": line.attempt, "shard": line.shard, "worker": line.worker}
        said = {"at": stamp(line.at), "level": line.level, "logger": JOB_LOGGER, "message": line.message}
        terminal.print_json(with_values({**said, **ids, "event": line.event, "data": line.data}), indent=None)
        return
    at = line.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    message = terminal.safe_lines(line.message, indent="    ")
    terminal.line(f"{at} #{line.attempt} {terminal.safe(line.level).upper():<7} {message}")

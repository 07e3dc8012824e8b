"""`silkline extract`: read the stored pages of a job again, for other fields or other content, without a request."""

from __future__ import annotations

from typing import Any

import click

from silkline.cli import terminal, views
from silkline.cli.content_options import content_options
from silkline.cli.crawl import HOLD, saving
from silkline.cli.field_options import field_options, with_fields
from silkline.cli.foreground import run_here
from silkline.cli.job_choice import chosen
from silkline.cli.option_errors import checked
from silkline.cli.resources import opened_to_find, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.errors import Refused, UsageError
from silkline.export.open import writable
from silkline.model.database import Database
from silkline.model.job import Job, NewJob
from silkline.store import html, jobs
from silkline.warc_files import folder_of


@click.command()
@click.argument("id", type=text)
@content_options
@field_options
@click.option("--detach", is_flag=True, help="Print the id of the new job and end; a worker runs the job.")
@click.option("-o", "--output", metavar="FILE", type=text, help="Write the results to this file when the job ends.")
@click.option("--force", is_flag=True, help="With -o: overwrite what exists.")
@everywhere()
@click.pass_obj
def extract(session: Session, /, id: str, detach: bool, output: str | None, force: bool, **given: Any) -> int | None:
    """Read the stored pages of a job again, for other fields or other content.

    The job must have run with --keep-html, or with --warc on this machine. This makes a new job with its own results;
    no request is sent.

    ID is the id of a job, its first characters, or `last` for the newest job that kept its pages.
    """
    settings = settings_of(session)
    if detach and output is not None:
        raise UsageError("-o cannot be used with --detach")
    form = writable(output, force=force) if output is not None else ""
    payload = {name: value for name, value in with_fields(given).items() if value not in (None, ())}
    with opened_to_find(settings) as database:
        source = chosen(
            session, database, id, lambda job: _has_pages(database, settings.data, job), "that kept its HTML"
        )
        if not _has_pages(database, settings.data, source):
            raise Refused(
                f"job {source.id} kept no pages: run it again with --keep-html, or with --warc on this machine"
            )
        spec = checked("extract", {**payload, "job": source.id})
        now = database.now()
        new = NewJob(
            kind="extract",
            payload=spec.model_dump(mode="json", exclude_unset=True),
            request_url=source.request_url,
            run_at=now if detach else now + HOLD,
            max_retries=settings.max_retries,
        )
        job = jobs.enqueue(database, new)[0]
    if detach:
        terminal.line(job.id)
        return None
    done = saving(session, settings, form, output, force) if output is not None else None
    opening = f"Reading the pages of job {source.id} ({views.about(source)}) again as job {job.id}."
    return run_here(session, settings, job, opening, done)


def _has_pages(database: Database, data: Any, job: Job) -> bool:
    return bool(html.page(database, job.id, wanted=1)) or folder_of(data, job.id).is_dir()

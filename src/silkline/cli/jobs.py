"""`silkline jobs`: list jobs, show one, and pause, resume, stop, cancel, retry or remove it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

import click

from silkline.cli import terminal, views
from silkline.cli.group import Lazy, LazyGroup
from silkline.cli.job_choice import can, chosen, has_ended
from silkline.cli.resources import existing, no_jobs, opened_to_find, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.config import Settings
from silkline.errors import NotFound, UsageError
from silkline.model.database import Database
from silkline.model.job import Job, Status, Verb
from silkline.model.ledger import FAILED, Counts
from silkline.model.sharding import is_parent
from silkline.store import jobs as store
from silkline.store import results, urls
from silkline.store import shards as stored_shards
from silkline.store.usage_view import usage_of_job
from silkline.store.waiting import why_it_waits
from silkline.store.workers import alive

# The stored status behind each word that is only shown.
BETWEEN = {
    "pending": Status.QUEUED,
    "pausing": Status.RUNNING,
    "stopping": Status.RUNNING,
    "cancelling": Status.RUNNING,
}
PAGE = 200
PAST = {
    Verb.PAUSE: "paused",
    Verb.RESUME: "resumed",
    Verb.STOP: "stopped",
    Verb.CANCEL: "cancelled",
    Verb.RETRY: "retried",
}


@click.group(cls=LazyGroup, default="ls", lazy={"add": Lazy("silkline.cli.add:add", "Add a job and print its id.")})
def jobs() -> None:
    """List, add, show, pause, resume, stop, cancel, retry or remove jobs.

    ID is the id of a job, its first characters, or `last` for the newest job that the command can be used on: `jobs
    resume last` resumes the newest paused job, `jobs rm last` removes the newest job that has ended. Without a
    command: ls.
    """


@jobs.command()
@click.option(
    "--status",
    type=click.Choice([*map(str, Status), *BETWEEN], case_sensitive=False),
    help="Only jobs with this status.",
)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=30, show_default=True, help="The maximum number of jobs."
)
@click.option("--shards", is_flag=True, help="Also the shards of each crawl, below it.")
@everywhere()
@click.pass_obj
def ls(session: Session, status: str | None, limit: int, shards: bool) -> None:
    """List jobs, newest first."""
    settings = settings_of(session)
    with existing(settings) as database:
        if database is None:
            _nothing_yet(session, settings)
            return
        found = list(islice(_listed(database, status), limit + 1))
        if shards:
            found = [each for job in found for each in (job, *_shards_of(database, job))]
            limit = len(found)
        counts = urls.counts_of(database, [job.id for job in found])
        now = database.now()
    short = views.short_ids([job.id for job in found])
    found = found[:limit]
    nothing = Counts()
    if session.json:
        terminal.print_json([views.as_value(job, counts.get(job.id, nothing), now) for job in found])
    elif found:
        rows = (views.row(job, id, counts.get(job.id, nothing), now) for job, id in zip(found, short, strict=False))
        terminal.table(("ID", "KIND", "STATUS", "PROGRESS", "AGE", "URL"), rows, status=2)
        if len(short) > limit:
            session.say(f"These are the newest {limit}; --limit shows more.")
    else:
        session.say("No jobs." if status is None else f"No jobs are {status}.")


def _shards_of(database: Database, job: Job) -> list[Job]:
    return stored_shards.of(database, job.id) if is_parent(job) else []


def _nothing_yet(session: Session, settings: Settings) -> None:
    if session.json:
        terminal.print_json([])
    else:
        sentence = no_jobs(settings)
        session.say(f"{sentence[0].upper()}{sentence[1:]}.")


def _listed(database: Database, word: str | None) -> Iterator[Job]:
    status = (BETWEEN.get(word) or Status(word)) if word else None
    before = store.LAST_ID
    while page := store.page(database, before=before, wanted=PAGE, status=status):
        now = database.now()
        yield from (job for job in page if word not in BETWEEN or views.shown(job, now) == word)
        before = page[-1].id


@jobs.command()
@click.argument("id", type=text)
@everywhere()
@click.pass_obj
def show(session: Session, id: str) -> None:
    """Show everything about one job."""
    settings = settings_of(session)
    with opened_to_find(settings) as database:
        job = chosen(session, database, id)
        counts, now = urls.counts(database, job.id), database.now()
        why, stored = urls.reasons(database, job.id), results.count(database, job.id)
        waits_for = why_it_waits(job, alive(database, settings.stale_after), now)
        usage = usage_of_job(database, job, counts.live)
    log = settings.logs / f"{job.id}.log"
    if session.json:
        reasons = [{"state": state, "reason": reason, "urls": number} for state, reason, number in why]
        terminal.print_json(
            {**views.as_value(job, counts, now, usage), "reasons": reasons, "results": stored, "waits_for": waits_for}
        )
    else:
        file = str(log) if log.exists() else ""
        terminal.pairs(views.everything(job, counts, why, stored, file, now, waits_for, usage))


def _verb(verb: Verb, help: str) -> click.Command:
    """Make the command that applies one verb to one job."""

    @click.command(verb.value, help=help)
    @click.argument("id", type=text)
    @everywhere()
    @click.pass_obj
    def command(session: Session, id: str) -> None:
        settings = settings_of(session)
        with opened_to_find(settings) as database:
            named = chosen(session, database, id, can(verb), f"that can be {PAST[verb]}")
            from silkline.runner.job_commands import ask

            job = ask(database, settings.data, named.id, verb)
            counts, now = urls.counts(database, job.id), database.now()
            waits_for = why_it_waits(job, alive(database, settings.stale_after), now)
        _tell(session, job, counts, now, waits_for)

    return command


pause = _verb(Verb.PAUSE, "Pause a job: it saves a checkpoint and waits for `resume`.")
resume = _verb(Verb.RESUME, "Put a paused job back into the queue; it continues from its checkpoint.")
stop = _verb(Verb.STOP, "End a job and keep its results.")
cancel = _verb(Verb.CANCEL, "End a job; it cannot be retried.")
for each in (pause, resume, stop, cancel):
    jobs.add_command(each)


@jobs.command()
@click.argument("id", type=text)
@click.option(
    "--reason",
    type=text,
    metavar="REASON",
    help="Retry only the URLs that failed for this reason, such as timeout or http_503. If the job has "
    "completed, a new "
    "job retries them.",
)
@click.option("--fetchers", type=click.IntRange(1, 256), help="Continue with this many fetcher processes.")
@click.option("--parsers", type=click.IntRange(0, 256), help="Continue with this many parser processes.")
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), help="Continue with this many concurrent requests per fetcher."
)
@click.option("--cpus", type=click.FloatRange(0, 1_000, min_open=True), help="Continue with at most this many cores.")
@everywhere()
@click.pass_obj
def retry(session: Session, /, id: str, reason: str | None, **sizes: float | None) -> None:
    """Continue a failed or stopped job from its checkpoint, or retry the URLs that failed for one reason."""
    changes = {name: size for name, size in sizes.items() if size is not None}
    if reason is not None and changes:
        raise UsageError("--reason cannot be used with --fetchers, --parsers, --concurrency or --cpus")
    settings = settings_of(session)
    with opened_to_find(settings) as database:
        if reason is None:
            job = chosen(session, database, id, can(Verb.RETRY), "that can be retried")
            from silkline.runner.job_commands import ask

            job = ask(database, settings.data, job.id, Verb.RETRY, changes)
        else:
            job = _retry_reason(session, database, id, reason)
        counts, now = urls.counts(database, job.id), database.now()
        waits_for = why_it_waits(job, alive(database, settings.stale_after), now)
    _tell(session, job, counts, now, waits_for)


def _tell(session: Session, job: Job, counts: Counts, now: datetime, waits_for: str | None) -> None:
    """Say what a verb did to a job. If no worker will start a queued job, say that too."""
    if session.json:
        terminal.print_json(views.as_value(job, counts, now))
    session.say(f"Job {job.id} is {views.shown(job, now)}.")
    if hint := views.start_hint(job, waits_for, now):
        session.say(hint)


def _retry_reason(session: Session, database: Database, id: str, reason: str) -> Job:
    from silkline.api.requeue import requeue

    def failed_so(job: Job) -> bool:
        return bool(urls.failures(database, job.id, reason=reason, wanted=1))

    job = chosen(session, database, id, failed_so, f"with URLs that failed with {reason}")
    if not failed_so(job):
        known = ", ".join(name for state, name, _ in urls.reasons(database, job.id) if state == FAILED)
        raise NotFound(f"no URL of job {job.id} failed with {reason!r}; reasons in this job: {known or 'none'}")
    again = requeue(database, job, reason)
    if again.id != job.id:
        session.say(f"Job {job.id} has completed; a new job retries these URLs.")
    elif job.status is Status.PAUSED:
        session.say(f"The URLs are queued again. To resume the job: silkline resume {job.id}")
    return again


@jobs.command()
@click.argument("id", type=text)
@everywhere()
@click.pass_obj
def rm(session: Session, id: str) -> None:
    """Remove a job that has ended, with its results, ledger and log."""
    from silkline import warc_files
    from silkline.store import job_removal

    settings = settings_of(session)
    with opened_to_find(settings) as database:
        job = chosen(session, database, id, has_ended, "that has ended")
        removed = job_removal.delete(database, job.id)
    for each in removed:
        warc_files.remove(settings.data, settings.logs, each)
    if session.json:
        terminal.print_json({"id": job.id, "removed": True})
    session.say(f"Job {job.id} was removed.")

"""`silkline jobs`: list jobs, look at one, and say what you want of it."""

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
from silkline.model.job import Job, Status, Verb
from silkline.model.ledger import FAILED, Counts
from silkline.store import jobs as store
from silkline.store import results, urls
from silkline.store.database import Database
from silkline.store.waiting import SOON, why_it_waits
from silkline.store.workers import alive

# What each in-between word is shown for.
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


@click.group(
    cls=LazyGroup, default="ls", lazy={"add": Lazy("silkline.cli.add:add", "Ask for a new job; prints its id.")}
)
def jobs() -> None:
    """List jobs, add one, look at one, pause, stop or remove it.

    ID is a job's id, the first characters of it, or `last` for the newest job that the command fits: `jobs resume
    last` is the newest that is paused, `jobs rm last` the newest that has ended. Without a command: ls.
    """


@jobs.command()
@click.option(
    "--status", type=click.Choice([*map(str, Status), *BETWEEN], case_sensitive=False), help="Only jobs of this status."
)
@click.option("--limit", type=click.IntRange(1, 100_000), default=30, show_default=True, help="At most so many.")
@everywhere()
@click.pass_obj
def ls(session: Session, status: str | None, limit: int) -> None:
    """List jobs, newest first."""
    settings = settings_of(session)
    with existing(settings) as database:
        if database is None:
            _nothing_yet(session, settings)
            return
        found = list(islice(_listed(database, status), limit + 1))
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
            session.say(f"The newest {limit}; more with --limit.")
    else:
        session.say("No jobs." if status is None else f"No jobs are {status}.")


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
    log = settings.logs / f"{job.id}.log"
    if session.json:
        reasons = [{"state": state, "reason": reason, "urls": number} for state, reason, number in why]
        terminal.print_json(
            {**views.as_value(job, counts, now), "reasons": reasons, "results": stored, "waits_for": waits_for}
        )
    else:
        terminal.pairs(views.everything(job, counts, why, stored, str(log) if log.exists() else "", now, waits_for))


def _verb(verb: Verb, help: str) -> click.Command:
    """The command that applies one verb to one job."""

    @click.command(verb.value, help=help)
    @click.argument("id", type=text)
    @everywhere()
    @click.pass_obj
    def command(session: Session, id: str) -> None:
        settings = settings_of(session)
        with opened_to_find(settings) as database:
            named = chosen(session, database, id, can(verb), f"that can be {PAST[verb]}")
            from silkline.runner.orphans import ask

            job = ask(database, settings.data, named.id, verb)
            counts, now = urls.counts(database, job.id), database.now()
            waits_for = why_it_waits(job, alive(database, settings.stale_after), now)
        _tell(session, job, counts, now, waits_for)

    return command


pause = _verb(Verb.PAUSE, "Pause a job: it saves a checkpoint and waits.")
resume = _verb(Verb.RESUME, "Let a paused job go on from its checkpoint.")
stop = _verb(Verb.STOP, "End a job and keep what it has brought so far.")
cancel = _verb(Verb.CANCEL, "End a job for good.")
for each in (pause, resume, stop, cancel):
    jobs.add_command(each)


@jobs.command()
@click.argument("id", type=text)
@click.option(
    "--reason",
    type=text,
    metavar="REASON",
    help="Only the URLs that failed for this reason, such as timeout or http_503. Of a job that has completed they "
    "become a new job.",
)
@click.option("--fetchers", type=click.IntRange(1, 256), help="With another number of processes that fetch pages.")
@click.option("--parsers", type=click.IntRange(0, 256), help="With another number of processes that read pages.")
@click.option("--concurrency", type=click.IntRange(1, 10_000), help="With another number of requests in each fetcher.")
@everywhere()
@click.pass_obj
def retry(session: Session, /, id: str, reason: str | None, **sizes: int | None) -> None:
    """Let a failed or stopped job go on from its checkpoint, or try URLs again that failed for one reason."""
    changes = {name: size for name, size in sizes.items() if size is not None}
    if reason is not None and changes:
        raise UsageError("--reason keeps the sizes of the job: leave --fetchers, --parsers and --concurrency out")
    settings = settings_of(session)
    with opened_to_find(settings) as database:
        if reason is None:
            job = chosen(session, database, id, can(Verb.RETRY), "that can be retried")
            from silkline.runner.orphans import ask

            job = ask(database, settings.data, job.id, Verb.RETRY, changes)
        else:
            job = _retry_reason(session, database, id, reason)
        counts, now = urls.counts(database, job.id), database.now()
        waits_for = why_it_waits(job, alive(database, settings.stale_after), now)
    _tell(session, job, counts, now, waits_for)


def _tell(session: Session, job: Job, counts: Counts, now: datetime, waits_for: str | None) -> None:
    """What a verb made of a job. A queued job that nobody will start must not look as if it were under way."""
    if session.json:
        terminal.print_json(views.as_value(job, counts, now))
    session.say(f"Job {job.id} is {views.shown(job, now)}.")
    if job.status is Status.QUEUED and waits_for and waits_for != SOON:
        session.say(f"{waits_for} To run it here and now: silkline resume {job.id}")


def _retry_reason(session: Session, database: Database, id: str, reason: str) -> Job:
    from silkline.api.requeue import requeue

    def failed_so(job: Job) -> bool:
        return bool(urls.failures(database, job.id, reason=reason, wanted=1))

    job = chosen(session, database, id, failed_so, f"with URLs that failed with {reason}")
    if not failed_so(job):
        known = ", ".join(name for state, name, _ in urls.reasons(database, job.id) if state == FAILED)
        raise NotFound(f"no URL of job {job.id} failed with {reason!r}; the reasons there are: {known or 'none'}")
    again = requeue(database, job, reason)
    if again.id != job.id:
        session.say(f"Job {job.id} has completed; a new job tries these URLs again.")
    elif job.status is Status.PAUSED:
        session.say(f"They are queued again; go on with: silkline resume {job.id}")
    return again


@jobs.command()
@click.argument("id", type=text)
@everywhere()
@click.pass_obj
def rm(session: Session, id: str) -> None:
    """Remove a job that has ended, with its results, ledger and log."""
    from silkline import warc_files

    settings = settings_of(session)
    with opened_to_find(settings) as database:
        job = chosen(session, database, id, has_ended, "that has ended")
        store.delete(database, job.id)
    warc_files.remove(settings.data, settings.logs, job.id)
    if session.json:
        terminal.print_json({"id": job.id, "removed": True})
    session.say(f"Job {job.id} was removed.")

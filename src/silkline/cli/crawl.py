"""`silkline crawl` and `silkline resume`: run a crawl in the foreground; Ctrl-C pauses it."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from silkline.cli import terminal, views
from silkline.cli.content_options import content_options
from silkline.cli.fetch_options import fetch_options, payload_of, seconds
from silkline.cli.field_options import field_options, keep_html_option, with_fields
from silkline.cli.foreground import run_here
from silkline.cli.job_choice import chosen
from silkline.cli.option_errors import checked
from silkline.cli.page_file_options import page_file_options
from silkline.cli.resources import opened, opened_to_find, settings_of
from silkline.cli.results import save
from silkline.cli.seeds import Seeds, read_all_lines, read_lines
from silkline.cli.session import Session, everywhere, text
from silkline.cli.typed_url import with_scheme
from silkline.config import Settings
from silkline.errors import UsageError
from silkline.export.open import writable
from silkline.kinds import registry, requirements
from silkline.model.credential_origins import CREDENTIALS
from silkline.model.database import Database
from silkline.model.excluded_host import excluded_hosts_of
from silkline.model.job import ENDED, Job, NewJob, Status, Verb
from silkline.model.sharding import is_parent
from silkline.model.spec import MAX_URLS, SiteSpec
from silkline.runner.job_commands import ask
from silkline.store import job_removal, jobs

# This process is about to run the job, so workers must not claim it yet. If this process dies first, they claim it.
HOLD = timedelta(seconds=60)
LEAST_FILES = 128  # the same number as in crawl/file_budget.py, which commands must not import


@click.command()
@click.argument("urls", nargs=-1, type=text)
@click.option(
    "--seeds",
    metavar="FILE",
    type=text,
    help="Start from the URLs or hosts in this file, one per line; - is stdin. They are given URLs: --header and "
    "--cookie are sent to their origins too.",
)
@click.option("--limit", type=int, help="End after this many pages.")
@click.option("--depth", type=int, help="Follow links at most this many steps from the first pages.")
@click.option(
    "--scope",
    type=click.Choice(["host", "domain", "prefix", "any"], case_sensitive=False),
    help="Which links belong to the crawl. Default: host.",
)
@click.option("--include", metavar="RE", multiple=True, type=text, help="Only URLs that match; can be repeated.")
@click.option("--exclude", metavar="RE", multiple=True, type=text, help="No URLs that match; can be repeated.")
@click.option(
    "--exclude-hosts",
    metavar="FILE",
    type=text,
    help="Fetch nothing from the hosts in this file, one per line: example.com (with its subdomains), "
    "example.com:8080, *.example.com or a URL. # starts a comment; - is stdin.",
)
@click.option("--seeded-hosts-only", is_flag=True, help="Only hosts of the seeds.")
@content_options
@click.option(
    "--fetchers", type=int, help="Number of fetcher processes. Default: one per core, but not more than hosts."
)
@click.option("--parsers", type=int, help="Number of parser processes. Default: 0, fetchers parse their own pages.")
@click.option("--concurrency", type=int, help="Concurrent requests of one fetcher.")
@click.option("--shards", type=int, help="Split the crawl into this many parts, for many machines. PostgreSQL only.")
@click.option("--max-duration", metavar="TIME", type=seconds, help="End after this time: 90, 10m, 2h, 1d.")
@click.option("--warc", is_flag=True, help="Also keep the raw HTTP responses, for `results --format warc`.")
@click.option("--detach", is_flag=True, help="Print the id of the job and end; a worker runs the job.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=text,
    help="Write the results to this file when the job ends; a name that ends with / is a folder.",
)
@click.option("--force", is_flag=True, help="With -o: overwrite what exists.")
@field_options
@keep_html_option
@page_file_options
@fetch_options
@everywhere()
@click.pass_obj
def crawl(
    session: Session,
    /,
    urls: tuple[str, ...],
    seeds: str | None,
    detach: bool,
    output: str | None,
    force: bool,
    **given: Any,
) -> int | None:
    """Crawl one site or many in the foreground, with a progress line.

    Ctrl-C pauses the job, SIGTERM puts it back into the queue; both print the command that resumes it. The exit code
    tells how the job ended. With -o the results are written when the job has ended. The name of the file gives the
    format: .jsonl, .csv, .parquet, .xml, .warc, .warc.gz, or a folder of Markdown files for a name that ends with /.
    """
    settings = settings_of(session)
    if not detach:
        _refuse_too_few_files()
    form = _form_of(output, detach=detach, warc=given["warc"], force=force) if output is not None else ""
    spec = _spec([with_scheme(url) for url in urls], with_fields(given), seeded=seeds is not None, here=not detach)
    requirements.check_packages("site", spec, settings, here=not detach)
    lines = _first_seen(read_lines(seeds)) if seeds is not None else None
    with opened(settings) as database:
        now = database.now()
        new = NewJob(
            kind="site",
            payload=spec.model_dump(mode="json", exclude_unset=True),
            request_url=spec.request_url(),
            run_at=now if detach else now + HOLD,
            max_retries=settings.max_retries,
            paused=lines is not None,
        )
        job = jobs.enqueue(database, new)[0]
        if lines is not None:
            job = _plant(session, database, job, itertools.chain(spec.all_urls(), lines))
    if detach:
        terminal.line(job.id)
        return None
    done = saving(session, settings, form, output, force) if output is not None else None
    return run_here(session, settings, job, f"Crawling {views.about(job)} as job {job.id}.", done)


def _form_of(output: str, *, detach: bool, warc: bool, force: bool) -> str:
    """The format of the results. Refuse an output that cannot be written before the crawl starts."""
    if detach:
        raise UsageError(
            f"-o cannot be used with --detach: when the job has ended, run silkline results ID -o {output}"
        )
    form = writable(output, force=force)
    if form == "warc" and not warc:
        raise UsageError(f"{output} needs the raw HTTP responses: add --warc")
    return form


def saving(
    session: Session, settings: Settings, form: str, output: str, force: bool
) -> Callable[[Database, Job], None]:
    """What writes the results to a file when the job has ended."""

    def done(database: Database, job: Job) -> None:
        if job.status in ENDED:
            save(session, database, settings.data, job.id, form, output, force=force)
        else:
            session.say(
                f"To write the results when the job has ended: silkline results {job.id} -o {terminal.safe(output)}"
            )

    return done


def _spec(urls: list[str], given: dict[str, Any], *, seeded: bool, here: bool) -> SiteSpec:
    payload = payload_of(urls, given, here=here)
    if len(urls) == 1:
        payload["url"] = payload.pop("urls")[0]
    if seeded:
        payload["seeded"] = payload["planting"] = True
    if "exclude_hosts" in payload:
        payload["exclude_hosts"] = _excluded(payload["exclude_hosts"])
    spec = checked("site", payload, no_url="give at least one URL, or a file of URLs with --seeds FILE")
    assert isinstance(spec, SiteSpec)  # noqa: S101
    return spec


def _excluded(file: str) -> list[str]:
    try:
        return excluded_hosts_of(read_all_lines(file))
    except ValueError as error:
        raise UsageError(f"--exclude-hosts {file}, {error}") from error


def _first_seen(lines: Any) -> Any:
    """Read the first line before a job is stored, so that no job is stored for an empty or unreadable file."""
    first = next(lines, None)
    if first is None:
        raise UsageError("the seeds file is empty")
    return itertools.chain([first], lines)


def _plant(session: Session, database: Database, job: Job, lines: Any) -> Job:
    wants_origins = job.payload.get("headers_for") is None and any(job.payload.get(name) for name in CREDENTIALS)
    found = Seeds(lines, most_origins=MAX_URLS if wants_origins else 0)
    try:
        if is_parent(job):
            found.send(database, job.id, job.payload["shards"])
        else:
            found.plant(database, job.id)
        if not found.planted:
            raise UsageError(f"the seeds file contains no URL; its first line is {found.first_wrong[:80]!r}")
    except BaseException:  # Ctrl-C as well: do not crawl with only some of the seeds
        jobs.wish(database, job.id, Verb.CANCEL)
        job_removal.delete(database, job.id)
        raise
    origins = {"headers_for": sorted(found.origins)} if wants_origins else {}
    jobs.amend(database, job.id, {"planting": False, **origins})
    wrong = (
        f"; {found.wrong:,} lines are not URLs, the first is {terminal.safe(found.first_wrong[:80])}"
        if found.wrong
        else ""
    )
    session.say(f"{found.planted:,} seeds{wrong}.")
    return jobs.wish(database, job.id, Verb.RESUME)


def _refuse_too_few_files() -> None:
    """Refuse before a job is stored. Above this minimum the crawl adapts to the limit and logs that it does."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < LEAST_FILES:
        raise UsageError(
            f"the limit of open files is {hard:,}, a crawl needs at least {LEAST_FILES}: try `ulimit -n 1024`"
        )


@click.command()
@click.argument("id", type=text)
@click.option("--fetchers", type=click.IntRange(1, 256), help="Resume with this many fetcher processes.")
@click.option("--parsers", type=click.IntRange(0, 256), help="Resume with this many parser processes.")
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), help="Resume with this many concurrent requests per fetcher."
)
@click.option("--cpus", type=click.FloatRange(0, 1_000, min_open=True), help="Resume with at most this many cores.")
@click.option("--detach", is_flag=True, help="Let a worker run the job, like `silkline jobs resume`.")
@everywhere()
@click.pass_obj
def resume(session: Session, /, id: str, detach: bool, **sizes: float | None) -> int | None:
    """Run a paused or queued job in the foreground, from its checkpoint.

    A job whose process was killed is first put back into the queue. If a worker has already claimed the job, this
    command shows its progress until it ends.

    ID is the id of a job, its first characters, or `last` for the newest job that is paused, queued or running.
    """
    settings = settings_of(session)
    with opened_to_find(settings) as database:
        job = chosen(session, database, id, _can_go_on if detach else _can_run_here, "that can be resumed")
        if not detach:
            registry.refuse_external(job.kind)
        changes = {name: size for name, size in sizes.items() if size is not None}
        job = ask(database, settings.data, job.id, Verb.RESUME, changes)
    if detach:
        session.say(f"Job {job.id} is {job.status}.")
        return None
    return run_here(
        session, settings, job, f"{'Resuming' if job.attempt else 'Running'} {views.about(job)}, job {job.id}."
    )


def _can_go_on(job: Job) -> bool:
    return job.status in (Status.PAUSED, Status.QUEUED, Status.RUNNING)


def _can_run_here(job: Job) -> bool:
    return _can_go_on(job) and not registry.is_external(job.kind)

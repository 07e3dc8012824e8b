"""`silkline crawl` and `silkline resume`: a crawl that runs here, where Ctrl-C pauses it."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from silkline.cli import terminal, views
from silkline.cli.asking import asking, payload_of, seconds
from silkline.cli.foreground import run_here
from silkline.cli.job_choice import chosen
from silkline.cli.option_errors import checked
from silkline.cli.resources import opened, opened_to_find, settings_of
from silkline.cli.results import save
from silkline.cli.seeds import Seeds, read_all_lines, read_lines
from silkline.cli.session import Session, everywhere, text
from silkline.cli.typed_url import with_scheme
from silkline.config import Settings
from silkline.errors import UsageError
from silkline.export.open import writable
from silkline.kinds import requirements
from silkline.model.excluded_host import excluded_hosts_of
from silkline.model.job import ENDED, Job, NewJob, Status, Verb
from silkline.model.spec import SiteSpec
from silkline.runner.orphans import ask
from silkline.store import jobs
from silkline.store.database import Database

# A job that this process is about to run is not due for others yet; should we die first, they take it.
HOLD = timedelta(seconds=60)
LEAST_FILES = 128  # as crawl/file_budget.py has it, which commands do not import


@click.command()
@click.argument("urls", nargs=-1, type=text)
@click.option(
    "--seeds", metavar="FILE", type=text, help="Begin with the URLs or hosts in this file, one on a line; - is stdin."
)
@click.option("--limit", type=int, help="End after so many pages.")
@click.option("--depth", type=int, help="Follow links so many steps away from where it began.")
@click.option(
    "--scope",
    type=click.Choice(["host", "domain", "prefix", "any"], case_sensitive=False),
    help="Which links belong to it. Default: host.",
)
@click.option("--include", metavar="RE", multiple=True, type=text, help="Only URLs that match; may be given again.")
@click.option("--exclude", metavar="RE", multiple=True, type=text, help="No URLs that match; may be given again.")
@click.option(
    "--exclude-hosts",
    metavar="FILE",
    type=text,
    help="Nothing of the hosts in this file, one on a line: example.com (with its subdomains), example.com:8080, "
    "*.example.com or a URL. # begins a comment; - is stdin.",
)
@click.option("--seeded-hosts-only", is_flag=True, help="Only hosts that a seed named.")
@click.option(
    "--content",
    type=click.Choice(["markdown", "full", "text", "none"], case_sensitive=False),
    help="What is kept of a page. Default: markdown.",
)
@click.option("--fetchers", type=int, help="Processes that fetch. Default: one for each core, as far as hosts need.")
@click.option("--parsers", type=int, help="Processes that only parse. Default: 0, fetchers parse their own pages.")
@click.option("--concurrency", type=int, help="Requests in flight in one fetcher.")
@click.option("--max-duration", metavar="TIME", type=seconds, help="End after this time: 90, 10m, 2h, 1d.")
@click.option("--warc", is_flag=True, help="Keep the answers as they came: `results --format warc`.")
@click.option("--detach", is_flag=True, help="Leave it to a worker; print the id of the job.")
@click.option(
    "-o", "--output", metavar="FILE", type=text, help="Write the results here when it ends; a name with / is a folder."
)
@click.option("--force", is_flag=True, help="With -o: write over what is there.")
@asking
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
    """Crawl one site or many, here and now, with a line of progress.

    Ctrl-C pauses it, SIGTERM puts it back into the queue; both say how to go on. The exit code tells how it ended. With
    -o its results are written when it has ended, in the form that the name of the file asks for: .jsonl, .csv,
    .parquet, .xml, .warc, .warc.gz, or a folder of Markdown files for a name that ends with /.
    """
    settings = settings_of(session)
    if not detach:
        _refuse_too_few_files()
    form = _form_of(output, detach=detach, warc=given["warc"], force=force) if output is not None else ""
    spec = _spec([with_scheme(url) for url in urls], given, seeded=seeds is not None, here=not detach)
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
    done = _saving(session, settings, form, output, force) if output is not None else None
    return run_here(session, settings, job, f"Crawling {views.about(job)} as job {job.id}.", done)


def _form_of(output: str, *, detach: bool, warc: bool, force: bool) -> str:
    """What the results will be written as; refused before the crawl if they could not be."""
    if detach:
        raise UsageError(f"-o waits for the end, --detach does not: later, use silkline results ID -o {output}")
    form = writable(output, force=force)
    if form == "warc" and not warc:
        raise UsageError(f"{output} needs the answers as they come: add --warc")
    return form


def _saving(
    session: Session, settings: Settings, form: str, output: str, force: bool
) -> Callable[[Database, Job], None]:
    def done(database: Database, job: Job) -> None:
        if job.status in ENDED:
            save(session, database, settings.data, job.id, form, output, force=force)
        else:
            session.say(
                f"When it has ended, write its results with: silkline results {job.id} -o {terminal.safe(output)}"
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
    spec = checked("site", payload, no_url="name at least one URL, or a file of them with --seeds FILE")
    assert isinstance(spec, SiteSpec)  # noqa: S101
    return spec


def _excluded(file: str) -> list[str]:
    try:
        return excluded_hosts_of(read_all_lines(file))
    except ValueError as error:
        raise UsageError(f"--exclude-hosts {file}, {error}") from error


def _first_seen(lines: Any) -> Any:
    """The lines, once it is sure that there are some: nothing is stored for a file that cannot be read."""
    first = next(lines, None)
    if first is None:
        raise UsageError("the seeds file is empty")
    return itertools.chain([first], lines)


def _plant(session: Session, database: Database, job: Job, lines: Any) -> Job:
    found = Seeds(lines)
    try:
        found.plant(database, job.id)
        if not found.planted:
            raise UsageError(f"the seeds file holds no URL; its first line is {found.first_wrong[:80]!r}")
    except BaseException:  # ^C as well: a crawl of half its seeds is not what was asked for
        jobs.wish(database, job.id, Verb.CANCEL)
        jobs.delete(database, job.id)
        raise
    jobs.amend(database, job.id, {"planting": False})
    wrong = f"; {found.wrong:,} lines are no URLs, first {terminal.safe(found.first_wrong[:80])}" if found.wrong else ""
    session.say(f"{found.planted:,} seeds{wrong}.")
    return jobs.wish(database, job.id, Verb.RESUME)


def _refuse_too_few_files() -> None:
    """Before a job exists. With more files than that the crawl fits itself to them, and says so in its log."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < LEAST_FILES:
        raise UsageError(f"only {hard:,} files may be open, a crawl needs at least {LEAST_FILES}: try `ulimit -n 1024`")


@click.command()
@click.argument("id", type=text)
@click.option("--fetchers", type=click.IntRange(1, 256), help="Go on with so many fetcher processes.")
@click.option("--parsers", type=click.IntRange(0, 256), help="Go on with so many parser processes.")
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), help="Go on with so many requests in flight per fetcher."
)
@click.option("--detach", is_flag=True, help="Leave it to a worker, as `silkline jobs resume` does.")
@everywhere()
@click.pass_obj
def resume(session: Session, /, id: str, detach: bool, **sizes: int | None) -> int | None:
    """Go on with a paused job, here and now, from its checkpoint.

    A job whose process was killed is taken back first. A job that a worker has claimed already is followed until it
    ends.
    """
    settings = settings_of(session)
    with opened_to_find(settings) as database:
        job = chosen(session, database, id, _can_go_on, "that can go on")
        changes = {name: size for name, size in sizes.items() if size is not None}
        job = ask(database, settings.data, job.id, Verb.RESUME, changes)
    if detach:
        session.say(f"Job {job.id} is {job.status}.")
        return None
    return run_here(session, settings, job, f"Going on with {views.about(job)}, job {job.id}.")


def _can_go_on(job: Job) -> bool:
    return job.status in (Status.PAUSED, Status.QUEUED, Status.RUNNING)

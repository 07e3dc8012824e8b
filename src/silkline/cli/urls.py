"""`silkline urls` and `silkline errors`: the ledger of a job."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice

import click

from silkline.cli import terminal
from silkline.cli.job_choice import chosen
from silkline.cli.resources import opened_to_find, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.export.failed_urls import FailureGroup, grouped, ledger
from silkline.export.rows import pattern_of
from silkline.model.database import Database
from silkline.model.job import Job, Status
from silkline.model.ledger import STATES, UNCHANGED, Url
from silkline.model.reasons import at_command_line
from silkline.model.url import canonical
from silkline.store.backlinks import LinksIn
from silkline.store.url_view import url_views
from silkline.store.urls import counts

JSON_CHUNK = 500
_REDIRECTS = frozenset({"redirect_loop", "too_many_redirects"})
SHOWN_STATES = tuple(
    state for state in STATES if state != UNCHANGED
)  # no code sets this state yet: pages are not recrawled


def _with_ledger(session: Session, database: Database, id: str) -> Job:
    return chosen(session, database, id, lambda job: counts(database, job.id).discovered > 0, "that has seen a URL")


def _with_failures(session: Session, database: Database, id: str) -> Job:
    def fits(job: Job) -> bool:
        return job.status is Status.FAILED or counts(database, job.id).discovered > 0

    return chosen(session, database, id, fits, "that has seen a URL or failed")


@click.command()
@click.argument("id", type=text)
@click.option("--state", type=click.Choice(SHOWN_STATES, case_sensitive=False), help="Only URLs in this state.")
@click.option("--reason", type=text, metavar="REASON", help="Only URLs with this reason, such as robots or http_404.")
@click.option("--match", type=text, metavar="RE", help="Only URLs that match this regular expression.")
@everywhere()
@click.pass_obj
def urls(session: Session, /, id: str, state: str | None, reason: str | None, match: str | None) -> None:
    """List the URLs of a job, each with its state and reason.

    ID is the id of a job, its first characters, or `last` for the newest job that has seen a URL.
    """
    with opened_to_find(settings_of(session)) as database:
        job = _with_ledger(session, database, id)
        wanted = _wanted(database, job.id, state, reason, match)
        if session.json:
            while chunk := list(islice(wanted, JSON_CHUNK)):
                for view in url_views(database, job.id, chunk):
                    terminal.print_json(dataclasses.asdict(view), indent=None)
            return
        for url in wanted:
            status = str(url.http_status or "-")
            terminal.line(f"{url.state:<9} {status:<4} {url.reason or '-':<16} {terminal.safe(url.url)}")


def _wanted(database: Database, job_id: str, state: str | None, reason: str | None, match: str | None) -> Iterator[Url]:
    pattern = pattern_of(match)
    for url in ledger(database, job_id, state=state):
        if (reason is None or url.reason == reason) and (pattern is None or pattern.found_in(url.url)):
            yield url


@click.command()
@click.argument("id", type=text)
@click.option(
    "--examples", type=click.IntRange(1, 1_000), default=5, help="How many URLs to show for each reason. Default: 5."
)
@everywhere()
@click.pass_obj
def errors(session: Session, /, id: str, examples: int) -> None:
    """Show what failed, by reason, with the pages that link to it.

    ID is the id of a job, its first characters, or `last` for the newest job that has seen a URL or failed.
    """
    with opened_to_find(settings_of(session)) as database:
        job = _with_failures(session, database, id)
        found = grouped(database, job.id, examples=examples)
    if session.json:
        terminal.print_json([dataclasses.asdict(problem) for problem in found])
    elif not found:
        session.say(_without_failed_urls(job))
    else:
        for problem in found:
            _print_problem(problem, job.id)


def _without_failed_urls(job: Job) -> str:
    if job.status is not Status.FAILED:
        return "Nothing failed."
    why = terminal.safe_lines(job.error_message or job.exit_reason or "for an unknown reason")
    return f"The job failed: {why.removesuffix('.')}; no single URL failed."


def _print_problem(problem: FailureGroup, job_id: str) -> None:
    terminal.line(f"{problem.count:,} {terminal.safe(problem.reason)}: {at_command_line(problem.reason)}")
    for example in problem.examples:
        terminal.line(f"  {terminal.safe(example.url)}")
        for line in sources_of(example.links_in):
            terminal.line(f"    {line}")
        if example.detail:
            terminal.line(f"    {terminal.safe(_detail(problem.reason, example.detail))}")
    left = problem.count - len(problem.examples)
    if left:
        terminal.line(
            f"  and {left:,} more: silkline urls {job_id} --state failed --reason {terminal.safe(problem.reason)}"
        )


def _detail(reason: str, detail: str) -> str:
    """The detail of a failure. That of a redirect may be only the URL that it leads to."""
    return f"redirects to {detail}" if reason in _REDIRECTS and canonical(detail) else detail


def sources_of(links: LinksIn) -> list[str]:
    """The sources of links to a URL, one per line. Redirects come before the pages that link to them."""
    words = {"page": "linked from", "sitemap": "listed in", "redirect": "redirected from"}
    lines: list[str] = []
    via: tuple[str, ...] = ()
    for source in sorted(links.sources, key=lambda source: bool(source.via)):
        if source.via != via:
            via = source.via
            lines += [f"redirected from {terminal.safe(each)}" for each in via]
        lines.append(f"{words[source.kind]} {terminal.safe(source.url)}")
    left = links.count - len(links.sources)
    return [*lines, f"and {left:,} more"] if left else lines

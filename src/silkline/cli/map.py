"""`silkline map`: the URLs of a site, one in each line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from silkline.cli import codes, terminal
from silkline.cli.asking import asking, payload_of
from silkline.cli.logging_level import log_if_asked
from silkline.cli.reasons import in_words
from silkline.cli.resources import opened, settings_of
from silkline.cli.seeds import with_scheme
from silkline.cli.session import Session, everywhere, text
from silkline.export.problems import grouped, ledger
from silkline.model.job import NewJob, Status
from silkline.runner.inline import run_here
from silkline.store import results
from silkline.store.database import Database
from silkline.store.urls import DONE, SKIPPED, Url
from silkline.workers import registry

# Left alone by a crawl for its links, and part of the site all the same.
_KNOWN = frozenset({"not_a_page", "noindex", "robots"})


@click.command("map")
@click.argument("urls", nargs=-1, required=True, type=text, metavar="URL…")
@click.option("--links", is_flag=True, help="Follow links too: slower, and finds what no sitemap lists.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many URLs.")
@asking
@everywhere()
@click.pass_obj
def map_site(session: Session, /, urls: tuple[str, ...], **options: Any) -> int:
    """List the URLs of a site, from its sitemaps.

    Exit code 1: no URL was found.
    """
    settings = settings_of(session)
    log_if_asked(session, settings)
    payload = payload_of([with_scheme(url) for url in urls], options)
    registry.check_payload(registry.kind_named("map"), payload)
    with opened(settings) as database:
        new = NewJob("map", payload, request_url=payload["urls"][0], max_retries=settings.max_retries)
        job = run_here(database, settings, new, logging.getLogger("silkline.job"))
        number = 0
        for url in islice(_mapped(database, job.id), options["limit"]):
            _print(session, database, url)
            number += 1
        if not number:
            _say_why(session, database, job.id, links=options["links"])
    return codes.OK if number and job.status is Status.COMPLETED else codes.FAILED


def _mapped(database: Database, job_id: str) -> Iterator[Url]:
    for url in ledger(database, job_id):
        if url.state == DONE or (url.state == SKIPPED and url.reason in _KNOWN and url.found_via != "robots"):
            yield url


def _print(session: Session, database: Database, url: Url) -> None:
    if not session.json:
        terminal.line(terminal.safe(url.url))
        return
    found = results.by_url_id(database, url.job_id, url.id)
    said = found.data if found is not None else {}
    value = {"url": url.url, "found_via": url.found_via, "lastmod": said.get("lastmod"), "sitemap": said.get("sitemap")}
    terminal.print_json(value, indent=None)


def _say_why(session: Session, database: Database, job_id: str, *, links: bool) -> None:
    for problem in grouped(database, job_id, examples=1):
        terminal.complain(f"{problem.examples[0].url}: {in_words(problem.reason, problem.examples[0].detail)}")
    session.say("No URL was found." if links else "No sitemap lists any URL; --links follows links instead.")

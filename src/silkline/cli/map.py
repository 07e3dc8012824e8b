"""`silkline map`: print the URLs of a site, one per line, as soon as they are found."""

from __future__ import annotations

import json
import logging
import signal
import threading
from types import FrameType
from typing import Any

import click

from silkline.cli import codes, terminal
from silkline.cli.fetch_options import fetch_options, need_urls, payload_of
from silkline.cli.logging_level import log_if_asked
from silkline.cli.option_errors import checked
from silkline.cli.resources import opened, settings_of
from silkline.cli.seeds import typed_urls
from silkline.cli.session import Session, everywhere, text
from silkline.export.failed_urls import grouped
from silkline.kinds import requirements
from silkline.model.database import Database
from silkline.model.job import End, Job, NewJob, Status
from silkline.model.ledger import DONE, QUEUED, SKIPPED, Checkpoint
from silkline.model.reasons import at_command_line
from silkline.runner.inline import Watcher, run_here
from silkline.runner.orders import Orders

# The reasons of URLs that a crawl skips although they belong to the site.
_KNOWN = frozenset({"not_a_page", "noindex", "robots"})


@click.command("map")
@click.argument("urls", nargs=-1, required=True, type=text, metavar="URL…")
@click.option("--links", is_flag=True, help="Also follow links: slower, but finds URLs that no sitemap lists.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The maximum number of URLs.")
@fetch_options
@everywhere()
@click.pass_obj
def map_site(session: Session, /, urls: tuple[str, ...], **options: Any) -> int:
    """List the URLs of a site, from its sitemaps.

    Each URL is printed as soon as it is found. Ctrl-C ends the search and keeps the URLs that were found. The exit code
    is 1 if no URL was found.
    """
    settings = settings_of(session)
    log_if_asked(session, settings)
    asked = list(typed_urls(urls))
    need_urls(asked)
    spec = checked("map", payload_of(asked, options))
    requirements.check_packages("map", spec, settings, here=True)
    payload = spec.model_dump(mode="json", exclude_unset=True)
    with opened(settings) as database:
        new = NewJob("map", payload, request_url=spec.request_url(), max_retries=settings.max_retries)
        listing = MapPrinter(session, options["limit"])
        job = run_here(database, settings, new, logging.getLogger("silkline.job"), listing)
        if listing.interrupted:
            session.say(f"Interrupted: {listing.number:,} URLs were found and kept in job {job.id}.")
            return codes.INTERRUPTED
        if not listing.number:
            _say_why(session, database, job, links=options["links"])
    return codes.OK if listing.number and job.status is Status.COMPLETED else codes.FAILED


class MapPrinter(Watcher):
    """Prints the URLs of a map job while it runs, and ends the job at the limit or at Ctrl-C."""

    def __init__(self, session: Session, limit: int | None) -> None:
        self._session = session
        self._limit = limit
        self._orders: Orders | None = None
        self._waiting: dict[int, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._broken: BaseException | None = None
        self.number = 0
        self.interrupted = False

    def begin(self, orders: Orders) -> None:
        self._orders = orders
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._interrupt)

    def end(self) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._broken is not None:
            raise self._broken

    def recorded(self, checkpoint: Checkpoint) -> None:
        """Print the URLs of one checkpoint; called as soon as the checkpoint is stored."""
        with self._lock:
            for row in checkpoint.found:
                if row.state == QUEUED:
                    self._waiting[row.id] = (row.url, row.found_via)
                elif _belongs(row.state, row.reason, row.found_via):
                    self._print(row.url, row.found_via, "{}")
            said = {result.url_id: result.data for result in checkpoint.results}
            for settled in checkpoint.settled:
                if settled.state == QUEUED:
                    continue
                url, via = self._waiting.pop(settled.id, ("", ""))
                if url and _belongs(settled.state, settled.reason, via):
                    self._print(url, via, said.get(settled.id, "{}"))
            self._flush()

    def _print(self, url: str, via: str, data: str) -> None:
        if self._broken is not None or (self._limit is not None and self.number >= self._limit):
            return
        self.number += 1
        try:
            if self._session.json:
                told = json.loads(data)
                value = {"url": url, "found_via": via, "lastmod": told.get("lastmod"), "sitemap": told.get("sitemap")}
                terminal.print_json(value, indent=None)
            else:
                terminal.line(terminal.safe(url))
        except (OSError, terminal.OutputLost) as error:  # the output is closed: end the search
            self._broken = error

    def _flush(self) -> None:
        try:
            terminal.flush()
        except (OSError, terminal.OutputLost) as error:
            self._broken = self._broken or error
        enough = self._limit is not None and self.number >= self._limit
        if self._orders is not None and (enough or self._broken is not None):
            self._orders.give(End.COMPLETED)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted or self._orders is None:
            raise KeyboardInterrupt
        self.interrupted = True
        self._orders.give(End.COMPLETED)


def _belongs(state: str, reason: str | None, via: str) -> bool:
    """Whether a URL of the ledger is a page of the site and not a sitemap."""
    return state == DONE or (state == SKIPPED and reason in _KNOWN and via != "robots")


def _say_why(session: Session, database: Database, job: Job, *, links: bool) -> None:
    problems = grouped(database, job.id, examples=1)
    for problem in problems:
        terminal.complain(f"{problem.examples[0].url}: {at_command_line(problem.reason, problem.examples[0].detail)}")
    if job.status is Status.FAILED:
        if not problems:
            terminal.complain(job.error_message or job.exit_reason or "the job failed")
        return
    session.say("No URL was found." if links else "No sitemap lists any URL; use --links to follow links.")

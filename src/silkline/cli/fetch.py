"""`silkline fetch`, and `silkline URL`: pages as Markdown, here and now.

Runs in this very process, without a supervisor: there is nothing to protect. What it fetched is stored as a job that
completed, so that `--max-age` finds it again.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import sys
from typing import Any

import click

from silkline.cli import codes, terminal
from silkline.cli.asking import asking, need_urls, payload_of, seconds
from silkline.cli.logging_level import log_if_asked
from silkline.cli.option_errors import checked
from silkline.cli.resources import opened, settings_of
from silkline.cli.seeds import typed_urls
from silkline.cli.session import Session, everywhere, text
from silkline.config import Settings
from silkline.errors import Refused
from silkline.export.rows import content_of
from silkline.kinds import cache, requirements
from silkline.model.job import NewJob, Status
from silkline.model.reasons import at_command_line
from silkline.model.redaction import without_password
from silkline.model.spec import PageSpec
from silkline.model.url import canonical
from silkline.runner.inline import run_here
from silkline.store import results
from silkline.store.database import Database
from silkline.store.results import Result

FEW_WORDS = 40


@click.command()
@click.argument("urls", nargs=-1, required=True, type=text, metavar="URL…")
@click.option("--max-age", type=seconds, metavar="TIME", help="Take a stored page that is not older: 90, 10m, 2h, 1d.")
@click.option(
    "--content",
    type=click.Choice(["markdown", "full", "text", "none"], case_sensitive=False),
    default="markdown",
    show_default=True,
    help="The main content, the full page, plain text, or nothing but the facts.",
)
@click.option("--warc", is_flag=True, help="Keep the answers as they came, for `silkline results --format warc`.")
@asking
@everywhere()
@click.pass_obj
def fetch(session: Session, /, urls: tuple[str, ...], **options: Any) -> int:
    """Fetch pages and print them as Markdown.

    `-` reads URLs from stdin, one in each line. With --json: the whole result; one line for each URL if there are
    several. Exit code 1: no page could be had.
    """
    settings = settings_of(session)
    log_if_asked(session, settings)
    asked = list(typed_urls(urls))
    need_urls(asked)
    spec = checked("page", payload_of(asked, options))
    assert isinstance(spec, PageSpec)  # noqa: S101 - the registry says so
    requirements.check_packages("page", spec, settings, here=True)
    with opened(settings) as database:
        found = _find(database, settings, spec, asked)
    return _show(session, spec, asked, found)


def _find(database: Database, settings: Settings, spec: PageSpec, asked: list[str]) -> dict[str, Result]:
    """What there is to show for each URL: from the cache, else fetched now."""
    found: dict[str, Result] = {}
    for url in dict.fromkeys(asked):
        cached = cache.fresh(database, url, spec)
        if cached is not None:
            found[url] = cached
    missing = [url for url in dict.fromkeys(asked) if url not in found]
    if missing:
        found |= _fetched(database, settings, spec, missing)
    return found


def _fetched(database: Database, settings: Settings, spec: PageSpec, urls: list[str]) -> dict[str, Result]:
    payload = {**spec.model_dump(mode="json", exclude_unset=True), "urls": urls}
    payload.pop("url", None)
    payload.pop("max_age", None)
    new = NewJob("page", payload, request_url=urls[0], max_retries=settings.max_retries)
    job = run_here(database, settings, new, logging.getLogger("silkline.job"))
    stored = {canonical(each.original_url or "") or each.original_url: each for each in results.every(database, job.id)}
    # A job of which every page failed has failed; each page says why.
    if job.status is not Status.COMPLETED and len(stored) < len({canonical(url) or url for url in urls}):
        raise Refused(job.error_message or f"the job is {job.status}")
    return {url: stored[canonical(url) or url] for url in urls}


def _show(session: Session, spec: PageSpec, asked: list[str], found: dict[str, Result]) -> int:
    got = 0
    for url in asked:
        result = found[url]
        got += result.success
        if session.json:
            terminal.print_json(dataclasses.asdict(result), indent=2 if len(asked) == 1 else None)
        elif result.success:
            _print_page(result, url if len(asked) > 1 else None)
            if empty := _emptiness(result, spec):
                session.say(f"{terminal.safe(without_password(url))}: {empty}")
        if not result.success:
            why = at_command_line(str(result.metadata.get("error")), result.metadata.get("detail"))
            terminal.complain(f"{without_password(url)}: {why}")
    return codes.OK if got else codes.FAILED


def _print_page(result: Result, name: str | None) -> None:
    page = content_of(result).strip("\n")
    if name is not None:
        terminal.line(f"<!-- {terminal.safe(name).replace('--', '%2D%2D')} -->\n")
    if page.strip():
        terminal.line(terminal.safe_lines(page) if sys.stdout.isatty() else page)
    if name is not None:
        terminal.line()


def _emptiness(result: Result, spec: PageSpec) -> str:
    """What to say of a page that has no text, or only asks for JavaScript; nothing where it has some."""
    content = content_of(result)
    asks = len(content.split(None, FEW_WORDS)) < FEW_WORDS and re.search(r"java\s?script", content, re.IGNORECASE)
    if spec.content == "none" or (content.strip() and not asks):
        return ""
    what = "it asks for JavaScript" if asks else "it has no text"
    if result.metadata.get("rendered"):
        return f"{what}, although its scripts ran"
    if "html" not in str(result.metadata.get("content_type") or "html"):
        return what
    return f"{what}; if its scripts make the text, run them with --render auto"

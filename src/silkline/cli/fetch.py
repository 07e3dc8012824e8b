"""`silkline fetch`, and `silkline URL`: fetch pages and print them as Markdown.

The job runs in this process, without a supervisor: no other job has to be protected from it. The pages are stored as
a completed job, so that `--max-age` finds them later.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import sys
from typing import Any

import click

from silkline.cli import codes, terminal
from silkline.cli.content_options import content_options, little_kept
from silkline.cli.fetch_options import fetch_options, need_urls, payload_of, seconds
from silkline.cli.field_options import field_options, keep_html_option, with_fields
from silkline.cli.logging_level import log_if_asked
from silkline.cli.option_errors import checked
from silkline.cli.page_file_options import page_file_options, say_files
from silkline.cli.resources import opened, settings_of
from silkline.cli.seeds import typed_urls
from silkline.cli.session import Session, everywhere, text
from silkline.config import Settings
from silkline.errors import FieldsMissing, Refused
from silkline.export.rows import content_of
from silkline.kinds import cache, requirements
from silkline.model.database import Database
from silkline.model.job import NewJob, Status
from silkline.model.reasons import at_command_line
from silkline.model.redaction import without_password
from silkline.model.spec import PageSpec
from silkline.model.url import canonical
from silkline.runner.inline import run_here
from silkline.store import results
from silkline.store.results import Result

FEW_WORDS = 40


@click.command()
@click.argument("urls", nargs=-1, required=True, type=text, metavar="URL…")
@click.option(
    "--max-age", type=seconds, metavar="TIME", help="Use a stored page if it is not older than this: 90, 10m, 2h, 1d."
)
@content_options
@click.option("--warc", is_flag=True, help="Also keep the raw HTTP responses, for `silkline results --format warc`.")
@field_options
@keep_html_option
@page_file_options
@fetch_options
@everywhere()
@click.pass_obj
def fetch(session: Session, /, urls: tuple[str, ...], **options: Any) -> int:
    """Fetch pages and print them as Markdown.

    `-` reads URLs from stdin, one per line. With --fields or --field, the fields are printed as JSON instead. --json
    prints the whole result: one line per URL if there are several. The exit code is 1 if no page could be fetched.
    """
    settings = settings_of(session)
    log_if_asked(session, settings)
    asked = list(typed_urls(urls))
    need_urls(asked)
    spec = checked("page", payload_of(asked, with_fields(options)))
    assert isinstance(spec, PageSpec)  # noqa: S101 - the registry says so
    requirements.check_packages("page", spec, settings, here=True)
    with opened(settings) as database:
        found = _find(database, settings, spec, asked)
    code = _show(session, spec, asked, found)
    for url in dict.fromkeys(asked):
        say_files(session, settings.data, found[url])
    return code


def _find(database: Database, settings: Settings, spec: PageSpec, asked: list[str]) -> dict[str, Result]:
    """The result of each URL, from the cache if it is fresh, else fetched now."""
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
    if job.exit_reason == FieldsMissing.reason:
        raise Refused(job.error_message or FieldsMissing.reason)
    # If every page failed, the job failed too. Each page has its own error, so this is not an error of the job.
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
        elif result.success and spec.fields:
            _print_fields(result, url if len(asked) > 1 else None)
        elif result.success:
            _print_page(result, url if len(asked) > 1 else None)
            if empty := _emptiness(result, spec):
                session.say(f"{terminal.safe(without_password(url))}: {empty}")
            elif little := little_kept(result.data):
                session.say(f"{terminal.safe(without_password(url))}: {little}")
        if not result.success:
            why = at_command_line(str(result.metadata.get("error")), result.metadata.get("detail"))
            terminal.complain(f"{without_password(url)}: {why}")
    return codes.OK if got else codes.FAILED


def _print_fields(result: Result, name: str | None) -> None:
    """The fields of a page as JSON; with its name, on one line."""
    found = {key: result.data[key] for key in ("fields", "rows", "field_errors") if key in result.data}
    terminal.print_json({"url": name, **found} if name else found, indent=None if name else 2)


def _print_page(result: Result, name: str | None) -> None:
    page = content_of(result).strip("\n")
    if name is not None:
        terminal.line(f"<!-- {terminal.safe(name).replace('--', '%2D%2D')} -->\n")
    if page.strip():
        terminal.line(terminal.safe_lines(page) if sys.stdout.isatty() else page)
    if name is not None:
        terminal.line()


def _emptiness(result: Result, spec: PageSpec) -> str:
    """A message about a page without text, or with only a request for JavaScript; empty for other pages."""
    content = content_of(result)
    asks = len(content.split(None, FEW_WORDS)) < FEW_WORDS and re.search(r"java\s?script", content, re.IGNORECASE)
    if spec.content == "none" or (content.strip() and not asks):
        return ""
    if spec.keep and not asks:
        return f"--keep {terminal.safe(repr(', '.join(spec.keep)))} finds nothing on this page"
    what = "the page asks for JavaScript" if asks else "the page has no text"
    if result.metadata.get("rendered"):
        return f"{what}, although its scripts were run"
    if "html" not in str(result.metadata.get("content_type") or "html"):
        return what
    return f"{what}; if its scripts create the text, run them with --render auto"

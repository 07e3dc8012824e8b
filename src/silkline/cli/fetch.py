"""`silkline fetch`, and `silkline URL`: pages as Markdown, here and now.

Runs in this very process, without a supervisor: there is nothing to protect. What it fetched is stored as a job that
completed, so that `--max-age` finds it again.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from silkline.cli import codes, terminal
from silkline.cli.own_address import exemptions
from silkline.cli.reasons import in_words
from silkline.cli.redact import without_password
from silkline.cli.resources import opened, settings_of
from silkline.cli.seeds import read_lines, with_scheme
from silkline.cli.session import Session, everywhere, text
from silkline.config import Settings
from silkline.errors import Refused, UsageError
from silkline.model.job import NewJob, Status
from silkline.model.spec import PageSpec
from silkline.model.url import canonical
from silkline.runner.inline import run_here
from silkline.store import results
from silkline.store.database import Database
from silkline.store.results import Result
from silkline.workers import cache, registry

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds(value: str) -> float:
    """The type of a length of time: 90, 30s, 10m, 2h, 1d."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhd]?)", value)
    if not found:
        raise click.BadParameter(f"{value!r} is not a length of time; write 90, 30s, 10m, 2h or 1d.")
    return float(found[1]) * _UNITS[found[2]]


def header(value: str) -> tuple[str, str]:
    """The type of a header: `Name: value`."""
    name, colon, rest = value.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{value!r} is not a header; write 'Name: value'.")
    return name.strip(), rest.strip()


@click.command()
@click.argument("urls", nargs=-1, required=True, type=text, metavar="URL…")
@click.option("--max-age", type=seconds, metavar="TIME", help="Take a stored page that is not older: 90, 10m, 2h, 1d.")
@click.option(
    "--content",
    type=click.Choice(["markdown", "full", "text", "none"]),
    default="markdown",
    show_default=True,
    help="The main content, the full page, plain text, or nothing but the facts.",
)
@click.option("--header", "headers", type=header, multiple=True, metavar="K:V", help="Send this header as well.")
@click.option("--user-agent", type=text, metavar="UA", help="Go by this name.")
@click.option("--contact", type=text, metavar="EMAIL", help="Whom site owners can write to; sent in the User-Agent.")
@click.option("--proxy", type=text, metavar="URL", help="Ask through this proxy.")
@click.option("--allow-private", type=text, multiple=True, metavar="CIDR[:PORT]", help="Let it reach these addresses.")
@click.option("--ignore-robots", is_flag=True, help="Ask for pages that robots.txt does not allow.")
@click.option("--delay", type=seconds, metavar="TIME", help="Seconds between two requests to one host.")
@click.option("--speed", type=click.Choice(["polite", "normal", "fast", "max"]), help="How hard to work each host.")
@everywhere()
@click.pass_obj
def fetch(session: Session, /, urls: tuple[str, ...], **options: Any) -> int:
    """Fetch pages and print them as Markdown.

    `-` reads URLs from stdin, one in each line. With --json: the whole result; one line for each URL if there are
    several. Exit code 1: no page could be had.
    """
    settings = settings_of(session)
    asked = list(_all_urls(urls))
    payload = _payload(asked, options)
    spec = registry.check_payload(registry.kind_named("page"), payload)
    assert isinstance(spec, PageSpec)  # noqa: S101 - the registry says so
    with opened(settings) as database:
        found = _find(database, settings, spec, asked)
    return _show(session, asked, found)


def _all_urls(given: Sequence[str]) -> Iterator[str]:
    for url in given:
        if url == "-":
            yield from (with_scheme(line) for line in read_lines("-"))
        else:
            yield with_scheme(url)


def _payload(asked: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as a spec; each typed URL allows its own address."""
    if not asked:
        raise UsageError("no URL was given")
    given = {name: value for name, value in options.items() if value}
    if options["max_age"] is not None:
        given["max_age"] = options["max_age"]
    given["headers"] = dict(options["headers"])
    given["allow_private"] = [
        *options["allow_private"],
        *(each for url in asked for each in exemptions(url, look_up_names=True)),
    ]
    return {"urls": list(dict.fromkeys(asked)), **{name: value for name, value in given.items() if value != []}}


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
    if job.status is not Status.COMPLETED:
        raise Refused(job.error_message or f"the job is {job.status}")
    stored = {canonical(each.original_url or "") or each.original_url: each for each in results.every(database, job.id)}
    return {url: stored[canonical(url) or url] for url in urls}


def _show(session: Session, asked: list[str], found: dict[str, Result]) -> int:
    got = 0
    for url in asked:
        result = found[url]
        got += result.success
        if session.json:
            terminal.print_json(dataclasses.asdict(result), indent=2 if len(asked) == 1 else None)
        elif result.success:
            _print_page(result, url if len(asked) > 1 else None)
        if not result.success:
            why = in_words(str(result.metadata.get("error")), result.metadata.get("detail"))
            terminal.complain(f"{without_password(url)}: {why}")
    return codes.OK if got else codes.FAILED


def _print_page(result: Result, name: str | None) -> None:
    page = str(result.data.get("markdown") or result.data.get("text") or "").strip("\n")
    if name is not None:
        terminal.line(f"<!-- {terminal.safe(name).replace('--', '%2D%2D')} -->\n")
    terminal.line(terminal.safe_lines(page) if sys.stdout.isatty() else page)
    if name is not None:
        terminal.line()

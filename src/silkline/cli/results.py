"""`silkline results`: what a job brought, in constant memory however much it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import click

from silkline.cli import export, terminal
from silkline.cli.resources import opened, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.errors import UsageError
from silkline.store import jobs
from silkline.store import results as store
from silkline.store.results import Result


@click.command()
@click.argument("id", type=text)
@click.option(
    "--format", "form", type=click.Choice(list(export.FORMATS)), help="Default: the ending of the file, else jsonl."
)
@click.option("-o", "--output", metavar="PATH", type=text, help="Write to this file; for md to this folder.")
@click.option("--match", metavar="RE", type=text, help="Only results whose URL matches.")
@click.option("--status", "http_status", type=int, help="Only results with this HTTP status.")
@everywhere()
@click.pass_obj
def results(
    session: Session, id: str, form: str | None, output: str | None, match: str | None, http_status: int | None
) -> None:
    """Print what a job brought, or write it to a file.

    jsonl has everything, one result on a line. csv has a row for each page, safe to open in a spreadsheet. md is the
    Markdown of the pages; into a folder, one file for each.
    """
    form = form or export.format_of(output)
    pattern = _pattern(match)
    with opened(settings_of(session)) as database:
        job = jobs.find(database, id)
        found = _chosen(store.every(database, job.id), pattern, http_status)
        if output is None:
            for line in export.FORMATS[form](found):
                terminal.line(line)
            return
        written = export.to_folder(found, output) if form == "md" else export.to_file(found, form, output)
    session.say(f"{written:,} results written to {terminal.safe(output)}.")


def _pattern(match: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(match) if match is not None else None
    except re.error as error:
        raise UsageError(f"--match {match!r} is not a regular expression: {error}") from error


def _chosen(found: Iterable[Result], pattern: re.Pattern[str] | None, http_status: int | None) -> Iterator[Result]:
    for result in found:
        named = pattern is None or any(pattern.search(url) for url in (result.final_url, result.original_url or ""))
        if named and (http_status is None or result.metadata.get("http_status") == http_status):
            yield result

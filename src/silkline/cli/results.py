"""`silkline results`: write the results of a job to stdout or to a file, in several formats."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from silkline.cli import terminal
from silkline.cli.job_choice import chosen
from silkline.cli.resources import opened_to_find, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.errors import UsageError
from silkline.export.field_columns import columns_of
from silkline.export.markdown_chunks import CHUNK_SIZE, LARGEST, SMALLEST
from silkline.export.open import (
    FORMATS,
    PAGES_ONLY,
    TABLES,
    format_of,
    output_file,
    refuse_to_overwrite,
    to_path,
    to_stream,
)
from silkline.export.rows import Filter, stream
from silkline.export.table import COLUMNS, columns_in
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.store import results as stored
from silkline.store import urls
from silkline.store.results import Result


@click.command()
@click.argument("id", type=text)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS, case_sensitive=False),
    help="Default: from the name of the file, else jsonl.",
)
@click.option(
    "--chunk-size",
    type=click.IntRange(SMALLEST, LARGEST),
    metavar="N",
    help=f"With --format chunks: the maximum number of characters of a chunk. Default: {CHUNK_SIZE}.",
)
@click.option("-o", "--output", type=text, metavar="FILE", help="Write to this file (for md: a folder); - is stdout.")
@click.option("--force", is_flag=True, help="With -o: overwrite what exists.")
@click.option(
    "--state",
    type=click.Choice(["done", "failed"], case_sensitive=False),
    help="Only successful pages, or only failed ones.",
)
@click.option(
    "--status", "statuses", type=text, multiple=True, metavar="CODE", help="Only pages with this HTTP status: 200, 4xx."
)
@click.option(
    "--where",
    type=text,
    multiple=True,
    metavar="CONDITION",
    help="Only pages with such a field: 'price<20', stock=true, name~lamp, sku, '!sku'; can be repeated.",
)
@click.option("--match", type=text, metavar="RE", help="Only URLs that match this regular expression.")
@everywhere()
@click.pass_obj
def results(
    session: Session, /, id: str, form: str | None, chunk_size: int | None, output: str | None, force: bool, **only: Any
) -> None:
    """Write the results of a job.

    \b
    jsonl     JSON lines
    csv       a table for spreadsheets; the fields of a job are columns
    md        a folder of Markdown files
    parquet   a table with typed columns, also for the fields of a job
    sitemap   a sitemap of the stored pages
    warc      the raw HTTP responses, if the job ran with --warc
    links     the links between the pages: JSON lines, or a .csv or .parquet file
    chunks    the content in chunks for retrieval: JSON lines, or a .csv or .parquet file

    Existing files are overwritten only with --force. --state failed and --status also find URLs of a crawl that have no
    result.

    ID is the id of a job, its first characters, or `last` for the newest job with a successful result; if there is
    none, for the newest job with any result.
    """
    wanted = Filter(**only)
    output = None if output == "-" else output
    form = form or format_of(output)
    if chunk_size is not None and form != "chunks":
        raise UsageError("--chunk-size needs --format chunks")
    chunk_size = chunk_size or CHUNK_SIZE
    settings = settings_of(session)
    with opened_to_find(settings) as database:
        job = _chosen(session, database, id, wanted)
        if output is not None:
            save(session, database, settings.data, job.id, form, output, wanted, force=force, chunk_size=chunk_size)
        elif form == "warc":
            _print_archive(database, settings.data, job.id, wanted)
        elif form in TABLES:
            _print_table(database, job.id, form, wanted, chunk_size)
        elif not _print(database, job.id, wanted, form):
            session.say(f"Job {job.id} has no results." if wanted == Filter() else "No result matches.")


def _chosen(session: Session, database: Database, id: str, wanted: Filter) -> Job:
    """For `last`: the newest job with a successful result, else the newest one with any result."""

    def has_success(job: Job) -> bool:
        return urls.counts(database, job.id).done > 0

    def has_any(job: Job) -> bool:
        return bool(stored.count(database, job.id) or (wanted.asks_ledger and urls.counts(database, job.id).discovered))

    if wanted.asks_ledger:
        return chosen(session, database, id, has_any, "that has results")
    return chosen(session, database, id, has_success, "with a successful result", or_else=has_any)


def save(
    session: Session,
    database: Database,
    data: Path,
    job_id: str,
    form: str,
    name: str,
    wanted: Filter | None = None,
    *,
    force: bool = False,
    chunk_size: int = CHUNK_SIZE,
) -> None:
    """Write the results of a job to a file or folder, and say how many."""
    wanted, output = wanted or Filter(), Path(name)
    refuse_to_overwrite(form, output, force=force)
    if form == "warc":
        from silkline.export.warc import write_warc

        with output_file(output) as file:
            number = write_warc(database, data, job_id, wanted, file)
    elif form in TABLES:
        number = _save_table(database, job_id, form, output, wanted, chunk_size)
        one, several = TABLES[form]
        noun = f"{one} was" if number == 1 else f"{several} were"
        session.say(f"{number:,} {noun} written to {terminal.safe(name)}.")
        return
    else:
        number, left_out = _save(session, database, data, job_id, wanted, form, output, force=force)
        if form in PAGES_ONLY:
            session.say(_written_pages(form, number, left_out, name))
            return
    noun = "result was" if number == 1 else "results were"
    session.say(f"{number:,} {noun} written to {terminal.safe(name)}.")


def _written_pages(form: str, number: int, left_out: int, name: str) -> str:
    told = f"{number:,} {'page was' if number == 1 else 'pages were'} written to {terminal.safe(name)}"
    if not left_out:
        return f"{told}."
    if form == "md":
        return f"{told}; {left_out:,} failed {'result has' if left_out == 1 else 'results have'} no file."
    return f"{told}; {left_out:,} other {'result is' if left_out == 1 else 'results are'} not in it."


def _print(database: Database, job_id: str, wanted: Filter, form: str) -> int:
    """Returns the number of results."""
    if sys.stdout.isatty():
        return _print_safely(database, job_id, wanted, form)
    terminal.flush()
    number = 0
    fields = columns_of(database, job_id, COLUMNS)
    columns = columns_in(stream(database, job_id, wanted), fields) if form == "csv" else None
    with terminal.noticed(), to_stream(form, sys.stdout.buffer, fields, columns) as writer:
        for number, result in enumerate(stream(database, job_id, wanted), 1):  # noqa: B007
            writer.write(result)
    return number


def _print_safely(database: Database, job_id: str, wanted: Filter, form: str) -> int:
    """Print to a terminal: it must not interpret control characters of crawled pages."""
    if form != "jsonl":
        raise UsageError(f"{form} cannot be printed to a terminal: name a file with -o, or redirect the output")
    number = 0
    for number, result in enumerate(stream(database, job_id, wanted), 1):  # noqa: B007
        terminal.print_json(as_value(result), indent=None)
    return number


def as_value(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__slots__}


def _print_archive(database: Database, data: Path, job_id: str, wanted: Filter) -> None:
    from silkline.export.warc import write_warc

    if sys.stdout.isatty():
        raise UsageError("warc cannot be printed to a terminal: name a file with -o, or redirect the output")
    terminal.flush()
    with terminal.noticed():
        write_warc(database, data, job_id, wanted, sys.stdout.buffer)


def _save_table(database: Database, job_id: str, form: str, output: Path, wanted: Filter, chunk_size: int) -> int:
    from silkline.export.other_tables import table_of
    from silkline.export.row_files import write_rows

    kind = format_of(output.name)
    rows, columns = table_of(database, job_id, form, wanted, chunk_size=chunk_size)
    with output_file(output) as file:
        return write_rows(rows, columns, kind if kind in ("csv", "parquet") else "jsonl", file)


def _print_table(database: Database, job_id: str, form: str, wanted: Filter, chunk_size: int) -> None:
    from silkline.export.other_tables import table_of
    from silkline.export.row_files import write_rows

    rows, columns = table_of(database, job_id, form, wanted, chunk_size=chunk_size)
    if sys.stdout.isatty():
        for row in rows:
            if row is not None:
                terminal.print_json(row._asdict(), indent=None)
        return
    terminal.flush()
    with terminal.noticed():
        write_rows(rows, columns, "jsonl", sys.stdout.buffer)


def _save(
    session: Session,
    database: Database,
    data: Path,
    job_id: str,
    wanted: Filter,
    form: str,
    output: Path,
    *,
    force: bool,
) -> tuple[int, int]:
    """Returns the number of results that were written, and of those that have no place in the format."""
    written = left_out = 0
    total = stored.count(database, job_id)
    fields = columns_of(database, job_id, COLUMNS)
    columns = columns_in(stream(database, job_id, wanted), fields) if form == "csv" else None
    opened = to_path(form, output, force=force, fields=fields, columns=columns, data=data)
    with opened as writer, _progress(session, total) as advance:
        for result in stream(database, job_id, wanted):
            if writer.write(result):
                written += 1
            else:
                left_out += 1
            advance(result)
    return written, left_out


@contextmanager
def _progress(session: Session, total: int) -> Iterator[Any]:
    """Show a progress bar if stderr is a terminal."""
    if session.quiet or not sys.stderr.isatty():
        yield lambda result: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Writing results", total=total or None)
        yield lambda result: bar.advance(task)

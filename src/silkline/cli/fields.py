"""`silkline fields`: try fields on one page and show what matched, or propose fields for it.

The page comes from the HTML that a job kept, if there is one; else it is fetched, and kept, so that the next try sends
no request. The page is parsed in a process of its own, as in every job.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import click
import msgspec

from silkline.cli import codes, terminal
from silkline.cli.fetch_options import fetch_options, payload_of
from silkline.cli.field_options import field_options, with_fields
from silkline.cli.logging_level import log_if_asked
from silkline.cli.option_errors import checked
from silkline.cli.resources import opened, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.cli.typed_url import with_scheme
from silkline.config import Settings
from silkline.crawl.extraction import SUGGESTIONS
from silkline.errors import Refused, UsageError
from silkline.kinds.extract import plan_for, read_one
from silkline.model.cached import is_personal
from silkline.model.database import Database
from silkline.model.job import Job, NewJob
from silkline.model.reasons import at_command_line
from silkline.model.spec import ExtractSpec, PageSpec
from silkline.model.url import canonical
from silkline.runner.inline import run_here
from silkline.store import html, jobs, page_cache, results
from silkline.store.results import Result

SHOWN_ROWS = 20


@click.command()
@click.argument("url", type=text)
@field_options
@click.option("--suggest", is_flag=True, help="Propose fields, as a file for --fields.")
@click.option("--fetch", "again", is_flag=True, help="Fetch the page, even if it is stored.")
@fetch_options
@everywhere()
@click.pass_obj
def fields(session: Session, /, url: str, suggest: bool, again: bool, **given: Any) -> int:
    """Try fields on one page, or propose fields for it.

    The page is fetched once and kept, so further tries send no request. The exit code is 1 if a field was not found.
    """
    settings = settings_of(session)
    log_if_asked(session, settings)
    options = with_fields(given)
    table = {name: options.pop(name, None) for name in ("fields", "each", "require_fields", "facts")}
    if not suggest and not table["fields"]:
        raise UsageError("give the fields with --fields FILE or --field NAME=SELECTOR, or ask for some with --suggest")
    wanted = {name: value for name, value in table.items() if value and name in ("fields", "each")}
    address = with_scheme(url)
    spec = checked("page", {**payload_of([address], options), **wanted, "keep_html": True, "content": "none"})
    assert isinstance(spec, PageSpec)  # noqa: S101 - the registry says so
    with opened(settings) as database:
        source = None if again or is_personal(spec.model_dump()) else _stored(database, address)
        if source is None:
            source = _fetched(database, settings, spec.model_dump(mode="json", exclude_unset=True), address)
        else:
            session.say(f"From the stored page of job {source[0].id}: {source[1].created_at:%Y-%m-%d %H:%M} UTC.")
        reading = _read(database, settings, source[1], wanted, suggest=suggest)
    if suggest:
        return show_suggestions(session, reading.get("suggestions") or [])
    return show_matches(session, list(spec.fields), reading)


def _stored(database: Database, url: str) -> tuple[Job, Result] | None:
    """The newest stored page for a URL, if its HTML was kept."""
    address = canonical(url)
    if address is None:
        return None
    since = database.now() - timedelta(seconds=page_cache.LONGEST_AGE)
    found = page_cache.newest_page(database, address, since)
    if found is None or html.by_url_id(database, found.job_id, found.url_id) is None:
        return None
    job = jobs.outline(database, found.job_id)
    return None if is_personal(job.payload) else (job, found)


def _fetched(database: Database, settings: Settings, payload: dict[str, Any], url: str) -> tuple[Job, Result]:
    new = NewJob("page", payload, request_url=url, max_retries=settings.max_retries)
    job = run_here(database, settings, new, logging.getLogger("silkline.job"))
    result = next(iter(results.every(database, job.id)), None)
    if result is None or not result.success:
        about = result.metadata if result is not None else {}
        why = at_command_line(str(about.get("error") or ""), about.get("detail")) or job.error_message or ""
        raise Refused(f"{url} could not be fetched: {why}")
    return jobs.get(database, job.id), result


def _read(
    database: Database, settings: Settings, result: Result, wanted: dict[str, Any], *, suggest: bool
) -> dict[str, Any]:
    """The data of the page with these fields."""
    spec = checked("extract", {**wanted, "job": result.job_id, "content": "none"})
    assert isinstance(spec, ExtractSpec)  # noqa: S101
    plan = plan_for(spec, settings.for_kinds())
    if suggest:
        plan = msgspec.structs.replace(plan, facts=(*plan.facts, SUGGESTIONS))
    reading = read_one(database, result, plan)
    if reading is None:
        raise Refused("the page has no HTML to read")
    if reading.reason is not None:
        raise Refused(f"the page could not be read: {at_command_line(reading.reason, reading.detail)}")
    data: dict[str, Any] = msgspec.json.decode(reading.data)
    return data


def show_matches(session: Session, names: list[str], data: dict[str, Any]) -> int:
    """Print the values, and what is wrong with them. The exit code is 1 if a field has no value in the page."""
    if session.json:
        terminal.print_json({name: data[name] for name in ("fields", "rows", "field_errors") if name in data})
    rows = data["rows"] if "rows" in data else [data.get("fields") or {}]
    if not session.json:
        for number, row in enumerate(rows[:SHOWN_ROWS], start=1):
            if "rows" in data:
                terminal.line(f"Row {number} of {len(rows):,}")
            for name, value in row.items():
                terminal.line(f"  {name}: {terminal.safe(json.dumps(value, ensure_ascii=False))}")
        for error in data.get("field_errors") or ():
            row = f" in row {error['row']}" if "row" in error else ""
            raw = f": {terminal.safe(json.dumps(error['raw'], ensure_ascii=False))}" if error["raw"] is not None else ""
            session.say(f"{error['field'] or 'all fields'}{row}: {error['error']}{raw}")
    missing = [name for name in names if not any(row.get(name) not in (None, []) for row in rows)]
    if missing:
        session.say(f"Not found: {', '.join(missing)}.")
    return codes.FAILED if missing else codes.OK


def show_suggestions(session: Session, groups: list[dict[str, Any]]) -> int:
    """Print the proposed fields as a file for `--fields`. Only the first group is active."""
    if session.json:
        terminal.print_json(groups)
    elif not groups:
        session.say("This page has no structured data and no repeated structure.")
    else:
        for number, group in enumerate(groups):
            mark = "" if number == 0 else "# "
            title = f"{group['rows']:,} rows of this page" if group["each"] else "The page"
            terminal.line(f"# {title}:")
            if group["each"]:
                terminal.line(f"{mark}each = {_toml(group['each'])}")
            terminal.line(f"{mark}[fields]")
            for each in group["fields"]:
                inner = ", ".join(f"{key} = {_toml(value)}" for key, value in each["field"].items())
                terminal.line(f"{mark}{each['name']} = {{ {inner} }}  # {terminal.safe(each['example'])}")
    return codes.OK if groups else codes.FAILED


def _toml(value: str) -> str:
    """A text of TOML: its rules for escapes are those of JSON."""
    return terminal.safe(json.dumps(value))

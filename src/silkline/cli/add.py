"""`silkline jobs add`: add a job of any kind."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from silkline.cli import terminal, views
from silkline.cli.resources import opened, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.cli.typed_url import with_scheme
from silkline.errors import SpecError, UsageError
from silkline.kinds import registry, requirements, specs
from silkline.model.duration import seconds_of
from silkline.model.job import NewJob
from silkline.model.strict_json import BadJson, parse_object
from silkline.store import jobs as store
from silkline.store import urls
from silkline.store.waiting import why_it_waits
from silkline.store.workers import alive

_INT4 = 2**31 - 1
LONGEST_WAIT = 100 * 366 * 86_400.0


@click.command()
@click.argument("url", required=False, type=text)
@click.option("--kind", required=True, metavar="KIND", type=text, help="What kind of job: page, site, map, …")
@click.option("--payload", metavar="JSON", type=text, help="The fields of the job: JSON, @FILE or - for stdin.")
@click.option(
    "--priority", type=click.IntRange(-_INT4, _INT4), default=0, help="Jobs with a higher number run first. Default: 0."
)
@click.option("--tenant", type=text, default="", help="The owner of the job. Tenants take turns.")
@click.option(
    "--run-at",
    metavar="TIME",
    type=text,
    help="Start at this time at the earliest: 2030-01-31T08:00Z, or 30s, 10m, 2h, 1d from now.",
)
@click.option(
    "--dedupe-key",
    type=text,
    help="If the tenant has a job with this key that has not ended, add no job and print the id of that job.",
)
@click.option(
    "--metadata", metavar="JSON", type=text, help="A JSON object to store with the job: JSON, @FILE or - for stdin."
)
@click.option("--paused", is_flag=True, help="Add the job as paused; start it with `silkline jobs resume`.")
@click.option(
    "--max-retries",
    type=click.IntRange(0, 1_000),
    help="How many retries, and how many crashes, are allowed. Default: the setting max_retries.",
)
@everywhere()
@click.pass_obj
def add(
    session: Session,
    url: str | None,
    kind: str,
    payload: str | None,
    priority: int,
    tenant: str,
    run_at: str | None,
    dedupe_key: str | None,
    max_retries: int | None,
    metadata: str | None,
    paused: bool,
) -> None:
    """Add a job and print its id."""
    settings = settings_of(session)
    known = registry.kind_named(kind, test_kinds=settings.test_kinds)
    given = with_url(read_object(payload, "the payload"), url)
    if not given and "url" in specs.spec_of(known).model_fields:
        raise UsageError("this job has no input: give a URL, or its fields with --payload")
    spec = specs.check_payload(known, given)
    if url and "allow_private" in type(spec).model_fields:
        spec = specs.check_payload(known, with_own_address(spec.model_dump(mode="json", exclude_unset=True), url))
    requirements.check_packages(known.name, spec, settings)
    when = read_time(run_at) if run_at else None
    with opened(settings) as database:
        new = NewJob(
            kind=known.name,
            payload=spec.model_dump(mode="json", exclude_unset=True),
            request_url=spec.request_url(),
            priority=priority,
            tenant=tenant,
            run_at=database.now() + when if isinstance(when, timedelta) else when,
            dedupe_key=dedupe_key,
            metadata=read_object(metadata, "the metadata"),
            paused=paused,
            max_retries=settings.max_retries if max_retries is None else max_retries,
        )
        job, fresh = store.enqueue(database, new)
        counts, now = urls.counts(database, job.id), database.now()
        waits = why_it_waits(job, alive(database, settings.stale_after), now) if fresh else None
    if session.json:
        terminal.print_json({**views.as_value(job, counts, now), "created": fresh})
    else:
        terminal.line(job.id)
    if not fresh:
        session.say(f"This job has the same key and has not ended; it is {views.shown(job, now)}.")
    elif hint := views.start_hint(job, waits, now):
        session.say(hint)


def read_object(given: str | None, what: str) -> dict[str, Any]:
    """Read an object from JSON, @FILE or stdin (`-`)."""
    if given is None:
        return {}
    try:
        if given == "-":
            text = sys.stdin.buffer.read().decode()
        elif given.startswith("@"):
            text = Path(given[1:]).read_text(encoding="utf-8")
        else:
            text = given
    except OSError as error:
        raise UsageError(f"{what} file {given[1:]} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{what} is not UTF-8") from error
    try:
        return parse_object(text, what)
    except BadJson as error:
        raise SpecError(str(error)) from error


def with_url(payload: dict[str, Any], url: str | None) -> dict[str, Any]:
    if url is None:
        return payload
    if "url" in payload:
        raise UsageError("the URL is given twice: as an argument and in the payload")
    return {**payload, "url": with_scheme(url)}


def with_own_address(payload: dict[str, Any], url: str) -> dict[str, Any]:
    """Allow the job to reach the address that the operator typed."""
    from silkline.cli.own_address import exemptions

    allowed = exemptions(with_scheme(url))
    return {**payload, "allow_private": [*payload.get("allow_private", ()), *allowed]} if allowed else payload


def read_time(text: str) -> datetime | timedelta:
    """Read a point in time, or a duration from now. A time without a zone is local time."""
    if re.fullmatch(r"\+?[\d.]+\s*[a-z][\w\s.]*", text, re.IGNORECASE):
        return _from_now(text)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        example = "2030-01-31T08:00Z, or from now: 30s, 10m, 2h, 1d"
        raise UsageError(f"--run-at {text!r} is not a time; examples: {example}") from error


def _from_now(text: str) -> timedelta:
    try:
        wait = seconds_of(text.removeprefix("+"))
    except ValueError as error:
        raise UsageError(f"--run-at: {error}") from error
    if wait > LONGEST_WAIT:
        raise UsageError(f"--run-at {text!r} is more than 100 years from now")
    return timedelta(seconds=wait)

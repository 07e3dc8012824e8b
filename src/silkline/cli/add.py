"""`silkline jobs add`: ask for a job of any kind."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from silkline.cli import terminal, views
from silkline.cli.resources import opened, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.errors import SpecError, UsageError
from silkline.model.job import NewJob
from silkline.store import jobs as store
from silkline.store import urls
from silkline.store.waiting import SOON, why_it_waits
from silkline.store.workers import alive
from silkline.workers import registry

_INT4 = 2**31 - 1
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@click.command()
@click.argument("url", required=False, type=text)
@click.option("--worker", required=True, metavar="KIND", type=text, help="What kind of job: page, site, map, …")
@click.option("--payload", metavar="JSON", type=text, help="The spec of the job as JSON, @FILE or - for stdin.")
@click.option("--priority", type=click.IntRange(-_INT4, _INT4), default=0, help="Higher runs first. Default: 0.")
@click.option("--tenant", type=text, default="", help="Whose job it is; tenants take turns.")
@click.option(
    "--run-at", metavar="TIME", type=text, help="Not before: 2030-01-31T08:00Z, or from now: 30s, 10m, 2h, 1d."
)
@click.option("--dedupe-key", type=text, help="At most one live job has this key; if there is one, it is the answer.")
@click.option("--max-retries", type=click.IntRange(0, 1_000), help="Retries, and crashes, allowed. Default: a setting.")
@everywhere()
@click.pass_obj
def add(
    session: Session,
    url: str | None,
    worker: str,
    payload: str | None,
    priority: int,
    tenant: str,
    run_at: str | None,
    dedupe_key: str | None,
    max_retries: int | None,
) -> None:
    """Ask for a new job; prints its id."""
    settings = settings_of(session)
    kind = registry.kind_named(worker, test_workers=settings.test_workers)
    spec = registry.check_payload(kind, with_url(read_payload(payload), url))
    if url and "allow_private" in type(spec).model_fields:
        spec = registry.check_payload(kind, with_own_address(spec.model_dump(mode="json", exclude_unset=True), url))
    when = read_time(run_at) if run_at else None
    with opened(settings) as database:
        new = NewJob(
            worker=kind.name,
            payload=spec.model_dump(mode="json", exclude_unset=True),
            request_url=spec.request_url(),
            priority=priority,
            tenant=tenant,
            run_at=database.now() + when if isinstance(when, timedelta) else when,
            dedupe_key=dedupe_key,
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
        session.say(f"A live job has this key already; it is {views.shown(job, now)}.")
    elif waits and waits != SOON:
        session.say(waits)


def read_payload(given: str | None) -> dict[str, Any]:
    """The payload that was given as JSON, @FILE or `-`."""
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
        raise UsageError(f"the payload file {given[1:]} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError("the payload is not UTF-8") from error
    return _object(text)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_each_once, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise SpecError(f"the payload is not JSON: {error}") from error
    except RecursionError as error:
        raise SpecError("the payload is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise SpecError("the payload holds half a character (a lone surrogate)") from error
    if not isinstance(value, dict):
        raise SpecError("the payload must be a JSON object, such as '{\"limit\": 10}'")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SpecError(f"the payload names {twice!r} twice")
    return value


def _no_constant(name: str) -> Any:
    raise SpecError(f"the payload is not JSON: {name} is no JSON number")


def with_url(payload: dict[str, Any], url: str | None) -> dict[str, Any]:
    if url is None:
        return payload
    if "url" in payload:
        raise UsageError("the URL is given twice: as an argument and in the payload")
    return {**payload, "url": url}


def with_own_address(payload: dict[str, Any], url: str) -> dict[str, Any]:
    """The payload, allowed to reach the address that the operator typed."""
    from silkline.cli.own_address import exemptions

    allowed = exemptions(url)
    return {**payload, "allow_private": [*payload.get("allow_private", ()), *allowed]} if allowed else payload


def read_time(text: str) -> datetime | timedelta:
    """A point in time, or a time from now. Without a zone it is local time."""
    wait = re.fullmatch(r"\+?(\d{1,6})([smhd])", text)
    if wait:
        return timedelta(seconds=int(wait[1]) * _UNITS[wait[2]])
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        example = "2030-01-31T08:00Z, or from now: 30s, 10m, 2h, 1d"
        raise UsageError(f"--run-at {text!r} is not a time; write {example}") from error

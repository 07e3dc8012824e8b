"""`silkline explain`: the story of one URL of a crawl, from the ledger."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from silkline.cli import terminal
from silkline.cli.resources import opened, settings_of
from silkline.cli.seeds import with_scheme
from silkline.cli.session import Session, everywhere, text
from silkline.cli.terminal import moment, safe
from silkline.errors import NotFound, UsageError
from silkline.model.url import canonical, url_key
from silkline.store import jobs, results, urls
from silkline.store.database import Database
from silkline.store.results import Result
from silkline.store.urls import Url

LONGEST_WAY = 200
STATES = {
    "queued": "waits for its turn, or is being fetched",
    "done": "was fetched and stored",
    "unchanged": "was fetched, and is as it was before",
    "failed": "could not be fetched",
    "skipped": "was not fetched",
}


@click.command()
@click.argument("id", type=text)
@click.argument("url", type=text)
@everywhere()
@click.pass_obj
def explain(session: Session, id: str, url: str) -> None:
    """Tell the story of one URL of a crawl.

    On which page it was found, how far from the seeds, how often it was tried, what became of it and why.
    """
    wanted = canonical(with_scheme(url))
    if wanted is None:
        raise UsageError(f"{url!r} is not a web address")
    with opened(settings_of(session)) as database:
        job = jobs.find(database, id)
        found = urls.by_key(database, job.id, url_key(wanted))
        if found is None:
            raise NotFound(f"job {job.id} has not seen {wanted}")
        way, result = _way(database, found), results.by_url_id(database, job.id, found.id)
    if session.json:
        brought = {**dataclasses.asdict(result), "data": None} if result else None
        terminal.print_json({**dataclasses.asdict(found), "way": [each.url for each in way], "result": brought})
    else:
        terminal.pairs(_story(found, way, result))


def _way(database: Database, url: Url) -> list[Url]:
    """How the crawl came here: the page that named it, the one that named that, and so on to a seed."""
    way: list[Url] = []
    while url.found_on is not None and len(way) < LONGEST_WAY:
        before = urls.by_id(database, url.job_id, url.found_on)
        if before is None:
            break
        way.append(before)
        url = before
    return way


def _story(url: Url, way: list[Url], result: Result | None) -> list[tuple[str, str]]:
    because = f": {url.reason}" if url.reason else ""
    return [
        ("URL", safe(url.url)),
        ("State", safe(f"{url.state}, it {STATES.get(url.state, 'is in the ledger')}{because}")),
        ("Detail", terminal.safe_lines(url.detail or "")),
        ("HTTP", str(url.http_status or "")),
        ("Tries", str(url.attempts)),
        ("Depth", str(url.depth)),
        ("Found", safe(f"as a {url.found_via}") if not way else safe(f"as a {url.found_via} on {way[0].url}")),
        ("Way", "\n".join(safe(each.url) for each in reversed(way)) if len(way) > 1 else ""),
        *_brought(result),
    ]


def _brought(result: Result | None) -> list[tuple[str, str]]:
    if result is None:
        return []
    facts: dict[str, Any] = {**result.data, **result.metadata}
    return [
        ("Landed on", safe(result.final_url) if result.final_url != result.original_url else ""),
        ("Title", safe(str(facts.get("title") or ""))),
        ("Error", safe(str(facts.get("error") or ""))),
        ("Stored", moment(result.created_at)),
    ]

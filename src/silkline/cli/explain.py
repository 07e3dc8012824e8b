"""`silkline explain`: what happened to one URL of a crawl, from the ledger."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from silkline.cli import terminal
from silkline.cli.job_choice import chosen
from silkline.cli.resources import opened_to_find, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.cli.terminal import moment, safe
from silkline.cli.typed_url import with_scheme
from silkline.cli.urls import sources_of
from silkline.errors import UsageError
from silkline.model.host_wait import in_words
from silkline.model.ledger import FOREIGN, QUEUED, Url
from silkline.model.url import canonical, url_key
from silkline.store import explain as told
from silkline.store import urls
from silkline.store.backlinks import LinksIn, LinksOut
from silkline.store.job_view import waits_of
from silkline.store.results import Result
from silkline.store.url_view import explanation

SHOWN_LINKS = 20
STATES = {
    "queued": "is waiting, or is being fetched",
    "done": "was fetched and stored",
    "failed": "could not be fetched",
    "skipped": "was not fetched",
}


@click.command()
@click.argument("id", type=text)
@click.argument("url", type=text)
@everywhere()
@click.pass_obj
def explain(session: Session, id: str, url: str) -> None:
    """Show what happened to one URL of a crawl.

    This includes the page where it was found, its distance from the seeds, the number of tries, its state and the
    reason, the pages that link to it, and its own links. If the URL waits, it says what the host waits for.

    ID is the id of a job, its first characters, or `last` for the newest job that saw the URL.
    """
    wanted = canonical(with_scheme(url))
    if wanted is None:
        raise UsageError(f"{url!r} is not a web address")
    with opened_to_find(settings_of(session)) as database:
        key = url_key(wanted)
        job = chosen(
            session, database, id, lambda job: urls.by_key(database, job.id, key, wanted) is not None, "that saw it"
        )
        found = told.explain(database, job.id, wanted)
        if session.json:
            terminal.print_json(dataclasses.asdict(explanation(database, found, content=False)))
            return
        waits = waits_of(job, urls.counts(database, job.id)) if found.url.state == QUEUED else []
        words = [in_words(wait, database.now()) for wait in waits if wait.host == found.url.host]
    way = list(found.path[-2::-1])
    told_all = [*_story(found.url, way, found.result), ("Its host", safe("".join(words)))]
    terminal.pairs([*told_all, *_links(found.links_in, found.links_out)])


def _story(url: Url, way: list[Url], result: Result | None) -> list[tuple[str, str]]:
    because = f": {url.reason}" if url.reason else ""
    how = "link of another host" if url.found_via == FOREIGN else url.found_via
    return [
        ("URL", safe(url.url)),
        ("State", safe(f"{url.state}, it {STATES.get(url.state, 'is in the ledger')}{because}")),
        ("Detail", terminal.safe_lines(url.detail or "")),
        ("HTTP", str(url.http_status or "")),
        ("Tries", str(url.attempts)),
        ("Depth", str(url.depth)),
        ("Found", safe(f"as a {how}") if not way else safe(f"as a {how} on {way[0].url}")),
        ("Way", "\n".join(safe(each.url) for each in reversed(way)) if len(way) > 1 else ""),
        *_result_lines(result),
    ]


def _result_lines(result: Result | None) -> list[tuple[str, str]]:
    if result is None:
        return []
    facts: dict[str, Any] = {**result.data, **result.metadata}
    return [
        ("Landed on", safe(result.final_url) if result.final_url != result.original_url else ""),
        ("Title", safe(str(facts.get("title") or ""))),
        ("Error", safe(str(facts.get("error") or ""))),
        ("Stored", moment(result.created_at)),
    ]


def _links(links_in: LinksIn, links_out: LinksOut) -> list[tuple[str, str]]:
    """The number of links in and out, and the first of them."""
    shown = [f"{url.state:<9} {safe(url.url)}" for url in links_out.urls[:SHOWN_LINKS]]
    number = "" if links_out.count is None else f"{links_out.count:,}"
    if links_out.unknown:
        number += f", of which {links_out.unknown:,} must not be followed"
    if links_out.count is not None and links_out.count - links_out.unknown > len(shown):
        shown.append("…")
    return [
        ("Links in", "\n".join([f"{links_in.count:,}", *sources_of(links_in)]) if links_in.count else ""),
        ("Links out", "\n".join([*([number] if number else []), *shown]) if number != "0" else ""),
    ]

"""`silkline tokens`: the access tokens of the API."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import click

from silkline.api.token_making import new_token
from silkline.cli import terminal
from silkline.cli.resources import existing, opened, settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.errors import NotFound, Refused, UsageError
from silkline.store import tokens as store


@click.group()
def tokens() -> None:
    """Add, list and remove tokens for the API."""


@tokens.command()
@click.argument("name", type=text)
@click.option(
    "--scope",
    type=click.Choice(["worker", "read", "write", "admin"], case_sensitive=False),
    default="read",
    show_default=True,
    help="What the token allows. worker: claim jobs for an external worker and deliver their pages, nothing else.",
)
@click.option(
    "--days",
    type=click.FloatRange(0, 36_500, min_open=True),
    help="The token is valid for this many days. Default: no end.",
)
@everywhere()
@click.pass_obj
def add(session: Session, name: str, scope: str, days: float | None) -> None:
    """Add a token and print it; it cannot be shown again."""
    if not name.strip():
        raise UsageError("a token needs a name, for example the name of its user")
    with opened(settings_of(session)) as database:
        until = database.now() + timedelta(days=days) if days else None
        id, token = new_token(database, name, scope, until)
    if session.json:
        terminal.print_json({"id": id, "name": name, "scope": scope, "token": token})
    else:
        terminal.line(token)


@tokens.command("ls")
@everywhere()
@click.pass_obj
def list_them(session: Session) -> None:
    """Show every token, without its secret."""
    with existing(settings_of(session)) as database:
        found = store.everyone(database) if database else []
    if session.json:
        terminal.print_json([dataclasses.asdict(token) for token in found])
    elif found:
        rows = ((token.id, token.scope, terminal.moment(token.expires_at) or "never", token.name) for token in found)
        terminal.table(("ID", "SCOPE", "ENDS", "NAME"), rows)
    else:
        session.say("There are no tokens; add one with `silkline tokens add NAME`.")


@tokens.command("rm")
@click.argument("token", type=text)
@everywhere()
@click.pass_obj
def remove(session: Session, token: str) -> None:
    """Remove a token; requests with it are refused from now on.

    TOKEN is its id, or its name if no other token has that name.
    """
    with existing(settings_of(session)) as database:
        if database is None:
            raise NotFound(f"no token {token}")
        found = _named(store.everyone(database), token)
        store.forget(database, found.id)
    session.say(f"Token {found.id} ({terminal.safe(found.name)}) is no longer valid.")


def _named(tokens: list[store.Token], wanted: str) -> store.Token:
    """The token with this id or name."""
    found = [token for token in tokens if token.id == wanted] or [token for token in tokens if token.name == wanted]
    if not found:
        raise NotFound(f"no token {wanted}")
    if len(found) > 1:
        raise Refused(f"{len(found)} tokens have the name {wanted}: give the id from `silkline tokens ls`")
    return found[0]

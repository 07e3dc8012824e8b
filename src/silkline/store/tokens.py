"""The stored tokens of the API: a public id and the hash of a secret."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from silkline.errors import NotFound
from silkline.model.database import Database


@dataclass(frozen=True, slots=True)
class Token:
    """One token, without its secret."""

    id: str
    name: str
    scope: str
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Secret:
    """The data to check a token."""

    id: str
    scope: str
    hash: str


def add(database: Database, *, id: str, name: str, scope: str, hash: str, expires_at: datetime | None = None) -> None:
    database.rows(
        "tokens.add",
        durable=True,
        id=id,
        label=name,
        scope=scope,
        hash=hash,
        expires_at=expires_at,
        now=database.now(),
    )


def secret(database: Database, id: str) -> Secret | None:
    """The token with this id, if it exists and has not expired."""
    found = database.rows("tokens.get", id=id, now=database.now())
    return Secret(found[0]["id"], found[0]["scope"], found[0]["hash"]) if found else None


def everyone(database: Database) -> list[Token]:
    return [Token(**row) for row in database.rows("tokens.all")]


def forget(database: Database, id: str) -> None:
    """Revoke a token, and end the sessions that signed in with it."""
    with database.transaction(durable=True) as transaction:
        transaction.rows("sessions.forget_of", token_id=id)
        if not transaction.rows("tokens.forget", id=id):
            raise NotFound(f"no token {id}")

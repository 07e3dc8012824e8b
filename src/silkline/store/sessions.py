"""The stored sessions of the web page: the token that signed in, the time, and a hash of the cookie."""

from __future__ import annotations

from datetime import timedelta

from silkline.model.database import Database

LIFETIME = timedelta(days=7)
IDLE = timedelta(hours=12)
TOUCHED_EVERY = timedelta(minutes=1)
KEPT = 20  # sessions of one token


def add(database: Database, hash: str, token_id: str) -> None:
    now = database.now()
    with database.transaction(durable=True) as transaction:
        transaction.rows("sessions.add", hash=hash, token_id=token_id, now=now, expires_at=now + LIFETIME)
        transaction.rows("sessions.sweep", now=now, idle_since=now - IDLE, token_id=token_id, kept=KEPT)


def token_of(database: Database, hash: str, *, used: bool = True) -> str | None:
    """The token that signed in, if the session is still valid. `used`: mark the session as used."""
    now = database.now()
    found = database.rows("sessions.get", hash=hash, now=now, idle_since=now - IDLE)
    if not found:
        return None
    if used and now - found[0]["seen_at"] > TOUCHED_EVERY:
        database.rows("sessions.touch", hash=hash, now=now)
    token_id: str = found[0]["token_id"]
    return token_id


def forget(database: Database, hash: str) -> None:
    database.rows("sessions.forget", durable=True, hash=hash)

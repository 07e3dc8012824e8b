"""Opens a database: chooses the driver by the URL, and upgrades the tables."""

from __future__ import annotations

from pathlib import Path

from silkline.errors import UsageError
from silkline.model.database import Database
from silkline.model.secret_url import masked
from silkline.store import migrate


def open_database(url: str, *, upgrade: bool = True) -> Database:
    """Open `sqlite:///PATH` or `postgresql://…` and upgrade its tables. Refuses a database of a newer version."""
    database = _connect(url)
    if upgrade:
        try:
            migrate.upgrade(database)
        except BaseException:
            database.close()
            raise
    return database


def open_existing(url: str) -> Database | None:
    """Like `open_database`, but only if the database has the tables of Silkline. Else None; nothing is created."""
    if (path := _sqlite_path(url)) is not None:
        from silkline.store.sqlite import has_tables

        return open_database(url) if has_tables(Path(path)) else None
    database = _connect(url)
    try:
        if not migrate.revision(database):
            database.close()
            return None
        migrate.upgrade(database)
    except BaseException:
        database.close()
        raise
    return database


def _sqlite_path(url: str) -> str | None:
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator and len(rest) > 1:
        return rest[1:] if rest.startswith("/") else rest
    return None


def _connect(url: str) -> Database:
    if (path := _sqlite_path(url)) is not None:
        from silkline.store.sqlite import SqliteDatabase

        return SqliteDatabase(path)
    scheme, separator, _ = url.partition("://")
    if scheme in ("postgresql", "postgres") and separator:
        from silkline.store.postgres import PostgresDatabase

        return PostgresDatabase(url)
    raise UsageError(f"the database URL must be sqlite:///PATH or postgresql://USER@HOST/NAME, not {masked(url)!r}")

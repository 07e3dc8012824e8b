"""The interface of a database, for the rest of the store.

A `Database` may be used from any thread. Reads and single statements stand alone; `transaction` groups several. Time
comes from `now`, which on PostgreSQL follows the server's clock, so that machines whose clocks differ agree on times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from silkline.errors import UsageError
from silkline.model.secret_url import masked

Row = Mapping[str, Any]


class Transaction(Protocol):
    """Statements of one transaction."""

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run a statement. Returns its rows, each as a dictionary."""
        ...

    def many(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **shared: Any) -> int:
        """Run a statement for many rows, each a sequence of `columns`. Returns how many rows of the table changed."""
        ...

    def script(self, sql: str) -> None:
        """Run the statements of a migration."""
        ...


class Bell(Protocol):
    """Rings when there may be work. A lost ring costs one poll interval, but never a job."""

    def fileno(self) -> int: ...
    def drain(self) -> None: ...
    def close(self) -> None: ...


class Database(Protocol):
    dialect: str

    def now(self) -> datetime: ...

    def rows(self, name: str, *, durable: bool = False, **parameters: Any) -> list[dict[str, Any]]:
        """Run one statement in its own transaction."""
        ...

    def many(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, durable: bool = False, **shared: Any
    ) -> int:
        """`Transaction.many` in its own transaction."""
        ...

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Transaction]:
        """A transaction that may write. `durable`: after the commit it survives a power failure."""
        ...

    def exclusive(self) -> AbstractContextManager[Transaction]:
        """A durable transaction for migrations. Only one of them runs at a time."""
        ...

    def ring(self) -> None:
        """Tell supervisors that there may be work."""
        ...

    def listen(self, name: str) -> Bell:
        """A bell for this caller, with this name."""
        ...

    def close(self) -> None: ...


def open_database(url: str, *, upgrade: bool = True) -> Database:
    """Open `sqlite:///PATH` or `postgresql://…` and upgrade its tables. Refuses a database of a newer version."""
    database = _connect(url)
    if upgrade:
        from silkline.store import migrate

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
        from silkline.store import migrate

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

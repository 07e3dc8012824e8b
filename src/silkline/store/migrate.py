"""Numbered migrations. Every program that opens a database brings it up to date first; a newer one is refused."""

from __future__ import annotations

import re

from silkline.errors import SchemaTooNew
from silkline.store.database import Database, Transaction
from silkline.store.statements import SQL

_NAME = re.compile(r"(\d{4})_\w+\.(sqlite|postgres)\.sql")


def migrations(dialect: str) -> dict[int, str]:
    """The revisions there are, each with its SQL, in order."""
    found = {}
    for file in sorted((SQL / "migrations").iterdir()):
        match = _NAME.fullmatch(file.name)
        if match and match[2] == dialect:
            found[int(match[1])] = file.read_text()
    return found


def revision(database: Database) -> int:
    """The revision a database has; 0 when it is empty."""
    return _recorded(database) if database.rows("schema.exists") else 0


def newest(database: Database) -> int:
    return max(migrations(database.dialect))


def upgrade(database: Database, *, to: int | None = None) -> tuple[int, int]:
    """Bring the tables up to date; the revisions before and after. Data stays."""
    before = revision(database)
    known = migrations(database.dialect)
    if before > max(known):
        raise SchemaTooNew(
            f"the database has schema revision {before}, but this Silkline knows only {max(known)}: upgrade Silkline "
            "(the database was not changed)"
        )
    target = max(known) if to is None else to
    if before < target:
        with database.exclusive() as transaction:
            transaction.rows("schema.create")
            # Another program that started at the same moment may have done it while we waited.
            for number in range(_recorded(transaction) + 1, target + 1):
                transaction.script(known[number])
                transaction.rows("schema.record", revision=number, applied=database.now().isoformat())
    return before, max(before, target)


def _recorded(database: Database | Transaction) -> int:
    return int(database.rows("schema.revision")[0]["revision"] or 0)

"""Numbered migrations. Every program that opens a database upgrades it first, and refuses one of a newer version."""

from __future__ import annotations

import re

from silkline.errors import SchemaTooNew
from silkline.model.database import Database, Transaction
from silkline.store.statements import SQL

_NAME = re.compile(r"(\d{4})_\w+\.(sqlite|postgres)\.sql")


def migrations(dialect: str) -> dict[int, str]:
    """All revisions in order, each with its SQL."""
    found = {}
    for file in sorted((SQL / "migrations").iterdir()):
        match = _NAME.fullmatch(file.name)
        if match and match[2] == dialect:
            found[int(match[1])] = file.read_text()
    return found


def revision(database: Database) -> int:
    """The revision of a database. 0: it is empty."""
    return _recorded(database) if database.rows("schema.exists") else 0


def newest(database: Database) -> int:
    return max(migrations(database.dialect))


def upgrade(database: Database, *, to: int | None = None) -> tuple[int, int]:
    """Upgrade the tables and keep the data. Returns the revisions before and after."""
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
            # Another program that started at the same time may have upgraded it meanwhile.
            for number in range(_recorded(transaction) + 1, target + 1):
                transaction.script(known[number])
                transaction.rows("schema.record", revision=number, applied=database.now().isoformat())
    return before, max(before, target)


def _recorded(database: Database | Transaction) -> int:
    return int(database.rows("schema.revision")[0]["revision"] or 0)

"""Whether a process can use its database, for `/readyz`."""

from __future__ import annotations

from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.store import migrate


def why_not_ready(database: Database) -> str | None:
    """The reason, or None if the database answers and has the right schema revision."""
    try:
        here, wanted = migrate.revision(database), migrate.newest(database)
    except StoreError:
        return "the database cannot be reached right now"
    if here != wanted:
        return f"the database has schema revision {here}, this server needs {wanted}"
    return None

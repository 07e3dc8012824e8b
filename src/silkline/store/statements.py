"""Named SQL statements from sql/*.sql.

A statement begins with `-- name: claim`, or `-- name: claim [sqlite]` where the databases differ, and is asked for as
"jobs.claim". Parameters are written `:name`, which is what SQLite takes; for PostgreSQL they become `%(name)s`.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

SQL = Path(__file__).parent / "sql"
_HEADER = re.compile(r"^-- name: (\w+)(?: \[(sqlite|postgres)\])?$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@functools.cache
def load(noun: str, dialect: str) -> dict[str, str]:
    """Every statement of one file in one dialect."""
    parts = _HEADER.split((SQL / f"{noun}.sql").read_text())[1:]
    found = {}
    for name, only, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if only in (None, dialect):
            found[name] = _translate(_without_comments(text), dialect)
    return found


def load_all(dialect: str) -> None:
    """Read every file now, because a process without free file descriptors cannot read them later."""
    for file in SQL.glob("*.sql"):
        load(file.stem, dialect)


@functools.cache
def statement(name: str, dialect: str) -> str:
    noun, _, verb = name.partition(".")
    return load(noun, dialect)[verb]


@functools.cache
def parameters_of(name: str) -> tuple[str, ...]:
    """The parameters of a statement as SQLite numbers them: in the order of their first appearance."""
    return tuple(dict.fromkeys(_PARAMETER.findall(statement(name, "sqlite"))))


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--")).strip().rstrip(";")


def _translate(sql: str, dialect: str) -> str:
    if dialect == "sqlite":
        return sql
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))

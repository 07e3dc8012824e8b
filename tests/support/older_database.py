"""Stores what an older Silkline had stored, with the migrations of its time: tests/data/upgrade, made by
make_older_database.py."""

import json
import struct
from contextlib import closing
from typing import Any

from silkline.model.url import url_key
from silkline.store import migrate
from silkline.store.opening import open_database
from tests.support.make_older_database import DATA, PORT

Rows = dict[str, list[dict[str, Any]]]
THEIRS = f"http://127.0.0.1:{PORT}/"


def rows_of(revision: int) -> Rows:
    found: Rows = json.loads((DATA / f"revision-{revision}.json").read_text())
    return {table: rows for table, rows in found.items() if table != "revision"}


def moved(rows: Rows, site: str) -> Rows:
    """The same rows for a site at another address, without the delay that gave us time to interrupt the crawl."""
    keys = {row["url_key"]: url_key(row["url"].replace(THEIRS, site)) for row in rows["crawl_urls"]}
    old, new = (each.removeprefix("http://").rstrip("/") for each in (THEIRS, site))

    def moved_value(name: str, value: Any) -> Any:
        if name.endswith("_key") and value in keys:
            return keys[value]
        if name == "keys":  # of links: 64-bit numbers, packed
            blob = bytes.fromhex(value["hex"])
            packed = struct.unpack(f"<{len(blob) // 8}q", blob)
            return {"hex": struct.pack(f"<{len(packed)}q", *(keys.get(key, key) for key in packed)).hex()}
        if isinstance(value, str):
            return value.replace(old, new).replace('"delay":0.5', '"speed":"max"')
        return value

    return {
        table: [{name: moved_value(name, value) for name, value in row.items()} for row in of_table]
        for table, of_table in rows.items()
    }


def store(database_url: str, revision: int, rows: Rows) -> None:
    """Create an empty database of this revision, and insert the rows."""
    with closing(open_database(database_url, upgrade=False)) as database:
        migrate.upgrade(database, to=revision)
        with database.transaction() as transaction:
            _insert(transaction, rows, database.dialect)


def _insert(transaction: Any, rows: Rows, dialect: str) -> None:
    for table, of_table in rows.items():
        for stored in of_table:
            # The database gives results their ids itself, in the same order.
            row = {name: value for name, value in stored.items() if (table, name) != ("crawl_results", "id")}
            values = ", ".join(_literal(value, dialect) for value in row.values())
            transaction.script(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})")


def _literal(value: Any, dialect: str) -> str:
    """Quoted, so that each database converts it to the type of its column."""
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return f"x'{value['hex']}'" if dialect == "sqlite" else rf"'\x{value['hex']}'"
    return "'" + str(value).replace("'", "''") + "'"

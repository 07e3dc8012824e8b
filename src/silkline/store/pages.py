"""Lists of the pages of a job: title, size and time of each, searched and sorted, without content.

Every sort reads an index in its order, from a cursor on. A search looks at a bounded number of rows at a time and says
how far it came, so no list reads a whole job, however large the job is.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from silkline.errors import UsageError
from silkline.model.database import Database, Transaction
from silkline.model.sharding import ids_before, shard_of_id
from silkline.store.shard_members import by_member, members
from silkline.store.text import clean

TITLE_LENGTH: Final = 300
KEY_LENGTH: Final = 60
UNKNOWN: Final = -1
# The number of rows that one search reads, so that it takes about 20 ms: in the order of discovery, in another order,
# and with a filter on the state only, which the database applies.
STRETCH: Final = 5_000
SORTED_STRETCH: Final = 2_000
STATE_STRETCH: Final = 50_000
_CHUNK: Final = 1_000
_LAST_ID: Final = 2**62
_LAST_TITLE: Final = "\U0010ffff" * (KEY_LENGTH + 1)
# For each sort: its statement, and the cursor before the first row.
SORTS: Final[dict[str, tuple[str, Any]]] = {
    "found": ("pages.by_found", 0),
    "-found": ("pages.by_newest", _LAST_ID),
    "title": ("pages.by_title", ""),
    "-title": ("pages.by_title_down", _LAST_TITLE),
    "size": ("pages.by_size", UNKNOWN - 1),
    "-size": ("pages.by_size_down", _LAST_ID),
    "time": ("pages.by_time", float(UNKNOWN - 1)),
    "-time": ("pages.by_time_down", float(_LAST_ID)),
}


class NewPage(NamedTuple):
    """The facts of a page that a checkpoint stores. `UNKNOWN` means that a number is not known."""

    url_id: int
    title: str
    title_key: str
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a stored page."""

    title: str
    bytes: int | None
    seconds: float | None
    stored_at: datetime


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a list: the ids of the URLs that fit, and the cursor for what comes after it, None at the end.

    `looked_at`: so many rows were read. With fewer ids than asked for and a cursor, the search can be continued.
    """

    ids: list[int]
    cursor: str | None
    looked_at: int


def prepare() -> None:
    """Import the modules that storing pages needs, because a crawl without free file descriptors cannot import."""
    import silkline.store.page_summary  # noqa: F401


def append(transaction: Transaction, job_id: str, results: Sequence[Any], now: datetime) -> None:
    """The pages of one checkpoint, from its results."""
    # Imported here, because commands that only read do not need msgspec.
    from silkline.store.page_summary import facts_of

    pages = [new_page(each.url_id, *facts_of(each.data, each.metadata)) for each in results]
    transaction.many("pages.append", NewPage._fields, pages, job_id=job_id, now=now)


def new_page(url_id: int, title: Any, size: Any, seconds: Any) -> NewPage:
    """The facts of a result. A job may have stored values of any type."""
    shown = " ".join(title.split())[:TITLE_LENGTH] if isinstance(title, str) else ""
    return NewPage(url_id, shown, shown.casefold()[:KEY_LENGTH], _size(size), _time(seconds))


def _size(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LAST_ID else UNKNOWN


def _time(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < _LAST_ID else float(UNKNOWN)


def of(database: Database, job_id: str, ids: Sequence[int]) -> dict[int, PageFacts]:
    """The facts of several pages, by the ids of their URLs."""
    rows = [
        row
        for member, some in (by_member(database, job_id, ids) if ids else ())
        for row in database.rows("pages.by_ids", job_id=member, ids=json.dumps(some))
    ]
    return {
        row["url_id"]: PageFacts(
            row["title"],
            row["bytes"] if row["bytes"] != UNKNOWN else None,
            row["seconds"] if row["seconds"] != UNKNOWN else None,
            row["stored_at"],
        )
        for row in rows
    }


def search(
    database: Database,
    job_id: str,
    *,
    sort: str = "found",
    cursor: str = "",
    text: str = "",
    state: str | None = None,
    wanted: int = 100,
    stretch: int | None = None,
) -> Stretch:
    """The next URLs of a job, in this order, whose address or title contains a text. Ignores case."""
    statement, place = SORTS[sort]
    id = _LAST_ID if sort.startswith("-") else 0
    if cursor:
        place, id = _read_cursor(cursor, place)
    several = members(database, job_id)
    if sort == "found" and state is not None and not text:
        return _in_states(database, several, state, id, wanted, stretch or STATE_STRETCH)
    stretch = stretch or (STRETCH if sort.endswith("found") else SORTED_STRETCH)
    needle, looked_at = text.casefold(), 0
    ids: list[int] = []
    plain = not needle and state is None
    while looked_at < stretch:
        asked = wanted + 1 if plain else min(_CHUNK, stretch - looked_at)
        parameters = {"id": id, "wanted": asked} | ({} if sort.endswith("found") else {"place": place})
        rows = _sorted_rows(database, several, statement, parameters, down=sort.startswith("-"))
        for row in rows:
            if len(ids) == wanted:
                return Stretch(ids, _cursor(place, id), looked_at)
            if (state is None or row["state"] == state) and (not needle or _holds(row, needle)):
                ids.append(row["id"])
            place, id = row["place"], row["id"]
            looked_at += 1
        if len(rows) < asked:
            return Stretch(ids, None, looked_at)
    return Stretch(ids, _cursor(place, id), looked_at)


def _sorted_rows(
    database: Database, several: Sequence[str], statement: str, parameters: dict[str, Any], *, down: bool
) -> list[dict[str, Any]]:
    """The next rows of a list, of all shards together."""
    found = [database.rows(statement, job_id=member, **parameters) for member in several]
    if len(found) == 1:
        return found[0]
    merged = heapq.merge(*found, key=lambda row: (row["place"], row["id"]), reverse=down)
    return list(itertools.islice(merged, parameters["wanted"]))


def _in_states(
    database: Database, several: Sequence[str], state: str, after: int, wanted: int, stretch: int
) -> Stretch:
    """The next URLs of one state, in the order of discovery; of shards, one after the other."""
    first = min(shard_of_id(after), len(several) - 1)
    start = max(after, ids_before(first) if len(several) > 1 else 0)
    found = _in_state(database, several[first], state, start, wanted, stretch)
    if found.cursor is not None or first == len(several) - 1:
        return found
    place = ids_before(first + 1)
    return Stretch(found.ids, _cursor(place, place), found.looked_at)


def _in_state(database: Database, job_id: str, state: str, after: int, wanted: int, stretch: int) -> Stretch:
    """The next URLs of one state, in the order of discovery."""
    upto = after + stretch
    rows = database.rows("pages.in_state", job_id=job_id, state=state, id=after, upto=upto, wanted=wanted + 1)
    ids = [row["id"] for row in rows[:wanted]]
    if len(rows) > wanted:
        return Stretch(ids, _cursor(ids[-1], ids[-1]), ids[-1] - after)
    if rest := database.rows("pages.by_found", job_id=job_id, id=upto, wanted=1):
        place = rest[0]["id"] - 1  # ids may be far apart: those of shards are
        return Stretch(ids, _cursor(place, place), stretch)
    return Stretch(ids, None, stretch)


def _holds(row: dict[str, Any], needle: str) -> bool:
    return needle in row["url"].casefold() or needle in row["title"].casefold()


def _cursor(place: Any, id: int) -> str:
    return json.dumps([place, id], ensure_ascii=False)


def _read_cursor(cursor: str, place: Any) -> tuple[Any, int]:
    """The position of a cursor. A cursor of another sort, or an invalid one, is an error."""
    try:
        given, id = json.loads(cursor)
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError("this cursor does not belong to this list") from error
    if type(id) is not int or not 0 <= id <= _LAST_ID or not _is_place(given, place):
        raise UsageError("this cursor does not belong to this list")
    return type(place)(given), id


def _is_place(given: Any, place: Any) -> bool:
    """Whether a cursor has a place of the same type as `place`, with a value that a database accepts."""
    if isinstance(place, str):
        return isinstance(given, str) and clean(given) == given
    kinds = (int, float) if isinstance(place, float) else (int,)
    return type(given) in kinds and UNKNOWN - 1 <= given <= _LAST_ID

"""New URLs are stored as they are, however many a checkpoint has, and whatever characters they contain."""

import pytest

from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.ledger import Checkpoint, NewUrl, NewUrls
from silkline.store import urls
from tests.store.given import running, settled, url

ODD = ('"', "\\", "\\N", "\t", "\n", "\r\n", "{a,b}", "NULL", "", "'", "\u00e9\U0001f577", "\\\\x41", '","')


def stored(database: Database, job_id: str) -> list[NewUrl]:
    rows = urls.page(database, job_id, wanted=1_000)
    return [NewUrl(*(getattr(row, name) for name in NewUrl._fields)) for row in rows]


@pytest.mark.parametrize("number", [1, 127, 128, 129, 300])
def test_any_number_of_urls(database: Database, number: int) -> None:
    job = running(database)
    found = [url(id, depth=id % 3, found_on=id // 2 or None) for id in range(1, number + 1)]
    urls.record(database, job, Checkpoint(found))
    assert stored(database, job.id) == found


def test_one_url_that_differs_among_many(database: Database) -> None:
    """Values that all URLs share are given to SQLite once."""
    job = running(database)
    found = [url(id) for id in range(1, 301)]
    found[150] = url(151, depth=4, state="skipped", reason="robots", detail="why", found_on=7, chain="https://a/")
    urls.record(database, job, Checkpoint(found))
    assert stored(database, job.id) == found


def test_odd_characters_in_every_text(database: Database) -> None:
    job = running(database)
    found = [
        url(id, url=f"https://example.com/{odd}", host=odd, state="skipped", reason=odd, detail=odd, chain=odd)
        for id, odd in enumerate(ODD, 1)
    ]
    found.append(url(len(ODD) + 1))
    urls.record(database, job, Checkpoint(found))
    assert stored(database, job.id) == found


def test_columns_and_rows_are_the_same(database: Database) -> None:
    job = running(database)
    rows = [url(1), url(2, state="skipped", reason="robots", detail="a\x00b"), url(3, found_via="link", found_on=1)]
    columns = NewUrls(rows[:1])
    columns.add(2, [list(column) for column in zip(*(row[1:] for row in rows[1:]), strict=True)])
    assert list(columns) == rows
    assert (len(columns), columns[1], columns[1:]) == (3, rows[1], rows[1:])
    counts = urls.record(database, job, Checkpoint(columns, [settled(1)]))
    assert (counts.queued, counts.done, counts.skipped, counts.discovered) == (1, 1, 1, 3)
    assert stored(database, job.id) == [
        rows[0]._replace(state="done"),
        rows[1]._replace(detail="a\ufffdb"),
        rows[2],
    ]


def test_a_url_that_is_there_already_is_refused(database: Database) -> None:
    """And nothing of its checkpoint is stored."""
    job = running(database)
    urls.record(database, job, Checkpoint([url(1)]))
    with pytest.raises(StoreError):
        urls.record(database, job, Checkpoint([url(id) for id in (*range(2, 200), 1, *range(200, 300))]))
    assert [row.id for row in stored(database, job.id)] == [1]
    urls.record(database, job, Checkpoint([url(2)]))
    assert [row.id for row in stored(database, job.id)] == [1, 2]

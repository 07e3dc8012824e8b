"""Lists of pages: every sort gives each page once; a search reads a bounded number of rows and says how far it came."""

import json
from typing import Any

import pytest

from silkline.errors import UsageError
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.ledger import Checkpoint
from silkline.store import job_removal, jobs, migrate, pages, results, urls
from silkline.store.opening import open_database
from silkline.store.page_summary import facts_of
from silkline.store.pages import SORTS, UNKNOWN, Stretch, new_page
from tests.store.given import finished, job_of_an_older_schema, result, running, settled, url

TITLES = ["beta", "Alpha", "", "gamma", "ALPHA", "日本語", "Straße", "beta"]


def titled(id: int, title: str, size: int, seconds: float) -> Any:
    data = json.dumps({"title": title, "markdown": "# hello"})
    return result(id, data=data, metadata=json.dumps({"bytes": size, "seconds": seconds}))


def crawl(database: Database) -> Job:
    """Ten URLs: eight stored, one that failed, one that waits."""
    job = running(database, kind="site")
    stored = [titled(id, title, 1000 - (id % 4) * 100, id / 10) for id, title in enumerate(TITLES, 1)]
    ends = [*(settled(id) for id in range(1, 9)), settled(9, "failed", reason="timeout")]
    urls.record(database, job, Checkpoint([url(id) for id in range(1, 11)], ends, stored))
    return job


def everything(database: Database, job: Job, **query: Any) -> list[int]:
    """A list read to its end, by its cursors."""
    ids: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        part = pages.search(database, job.id, cursor=cursor, **query)
        ids += part.ids
        cursor = part.cursor
    return ids


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("wanted", [1, 3, 100])
def test_every_sort_gives_every_page_once(database: Database, sort: str, wanted: int) -> None:
    job = crawl(database)
    crawl(database)  # another job with the same ids
    found = everything(database, job, sort=sort, wanted=wanted)
    assert sorted(found) == list(range(1, 11 if sort.endswith("found") else 9))
    facts = pages.of(database, job.id, found)
    keys: dict[str, Any] = {
        "found": lambda id: id,
        "title": lambda id: (facts[id].title.casefold(), id),
        "size": lambda id: (facts[id].bytes, id),
        "time": lambda id: (facts[id].seconds, id),
    }
    assert found == sorted(found, key=keys[sort.lstrip("-")], reverse=sort.startswith("-"))


@pytest.mark.parametrize("sort", SORTS)
def test_a_search_finds_addresses_and_titles_whatever_their_case(database: Database, sort: str) -> None:
    job = crawl(database)
    assert set(everything(database, job, sort=sort, text="alpha")) == {2, 5}
    assert set(everything(database, job, sort=sort, text="STRASSE")) == {7}
    assert set(everything(database, job, sort=sort, text="本")) == {6}
    assert set(everything(database, job, sort=sort, text="EXAMPLE.com/3")) == {3}
    assert everything(database, job, sort=sort, text="%") == [], "it is text, not a pattern"


def test_states_are_filtered_and_joined_with_a_search(database: Database) -> None:
    job = crawl(database)
    assert everything(database, job, state="failed") == [9]
    assert everything(database, job, state="queued") == [10]
    assert everything(database, job, state="done", wanted=3) == list(range(1, 9))
    assert everything(database, job, state="done", text="beta", sort="-size") == [8, 1]


def test_a_search_looks_at_so_many_rows_and_can_be_continued(database: Database) -> None:
    job = crawl(database)
    part = pages.search(database, job.id, text="/10", stretch=4)
    assert (part.ids, part.looked_at) == ([], 4)
    assert part.cursor
    assert everything(database, job, text="/10", stretch=4) == [10]
    assert everything(database, job, state="failed", stretch=4) == [9]
    assert everything(database, job, sort="title", text="example.com/3", stretch=1) == [3]
    assert pages.search(database, job.id, state="skipped", stretch=4) == Stretch([], "[4, 4]", 4)


@pytest.mark.parametrize("cursor", ["x", "7", "[1]", '["a", 1]', "[1, null]", "[1, -1]", '{"a": 1}', "[true, 1]"])
def test_a_cursor_that_was_made_up_is_refused(database: Database, cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        pages.search(database, crawl(database).id, sort="size", cursor=cursor)


def test_what_a_job_stores_need_not_be_a_page(database: Database) -> None:
    odd = [
        ({"title": 7}, {"bytes": "many", "seconds": None}),
        ({"title": None}, {"bytes": True, "seconds": -3}),
        ({}, {"bytes": 2**70, "seconds": 1e300}),
        ({"title": " a \n b " + "x" * 999}, {"bytes": 1.5}),
        ({"title": "nul \x00 and half a pair \ud800"}, {}),
    ]
    for data, metadata in odd:
        page = new_page(1, *facts_of(json.dumps(data), json.dumps(metadata)))
        assert (page.bytes, page.seconds) == (UNKNOWN, UNKNOWN)
        assert len(page.title) <= 300
    job = running(database, kind="site")
    stored = [result(id, data=json.dumps(data), metadata=json.dumps(more)) for id, (data, more) in enumerate(odd, 1)]
    ids = range(1, len(odd) + 1)
    urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], stored))
    assert pages.of(database, job.id, [4])[4].title.startswith("a b xxx")
    assert pages.of(database, job.id, [1])[1].bytes is None


def test_pages_go_with_their_results_and_their_job(database: Database) -> None:
    job = running(database, kind="site")
    urls.record(database, job, Checkpoint([url(1)], [settled(1, "failed", reason="timeout")], [titled(1, "a", 1, 1.0)]))
    assert pages.of(database, job.id, [1])
    assert urls.requeue(database, job.id, "timeout") == 1
    assert pages.of(database, job.id, [1]) == {}
    urls.record(database, job, Checkpoint(settled=[settled(1)], results=[titled(1, "b", 1, 1.0)]))
    finished(database, job)
    job_removal.delete(database, job.id)
    assert pages.of(database, job.id, [1]) == {}


def test_an_older_database_lists_the_pages_that_it_has(database_url: str) -> None:
    """Pages that were stored before there was a list are put into it."""
    with_pages = 7
    old = open_database(database_url, upgrade=False)
    migrate.upgrade(old, to=with_pages - 1)
    id = job_of_an_older_schema(old)
    rows = [titled(1, "Before", 77, 0.5), result(2, data='{"title": 3}', metadata="{}")]
    with old.transaction() as transaction:
        transaction.many("results.append", rows[0]._fields, rows, job_id=id, now=old.now())
        for one in (url(1), url(2)):
            transaction.script(
                "INSERT INTO crawl_urls (job_id, id, url_key, url, host, depth, state, found_via)"
                f" VALUES ('{id}', {one.id}, {one.url_key}, '{one.url}', '{one.host}', 0, 'queued', 'seed')"
            )
    old.close()
    database = open_database(database_url)
    job = jobs.get(database, id)
    first, second = (pages.of(database, job.id, [1, 2])[id] for id in (1, 2))
    assert (first.title, first.bytes, first.seconds) == ("Before", 77, 0.5)
    assert (second.title, second.bytes, second.seconds) == ("", None, None)
    assert first.stored_at == results.by_url_id(database, job.id, 1).created_at  # type: ignore[union-attr]
    assert everything(database, job, sort="-size") == [1, 2]
    database.close()

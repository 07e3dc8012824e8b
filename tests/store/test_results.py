"""Reading results, and the cache that knows a page under the URL asked for and the one it landed on."""

import json
from datetime import timedelta
from random import Random

import pytest

from silkline.model.database import Database
from silkline.model.job import End
from silkline.model.ledger import Checkpoint, NewResult
from silkline.store import job_removal, results, urls
from tests.store.given import finished, result, running, settled, url

ASKED, LANDED = 111, 222


def store(database: Database, *new: NewResult) -> str:
    job = running(database)
    ids = [each.url_id for each in new]
    urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], new))
    finished(database, job, End.COMPLETED)
    return job.id


def test_a_result_comes_back_by_the_names_of_the_contract(database: Database) -> None:
    before = database.now()
    id = store(database, result(1, data='{"markdown":"# Ü\\n","n":[1]}', metadata='{"http_status":200,"error":null}'))
    found = results.by_url_id(database, id, 1)
    assert found is not None
    assert (found.job_id, found.url_id, found.success) == (id, 1, True)
    assert (found.original_url, found.final_url) == ("https://example.com/1", "https://example.com/1")
    assert found.data == {"markdown": "# Ü\n", "n": [1]}
    assert found.metadata == {"http_status": 200, "error": None}
    assert before <= found.created_at <= database.now()
    assert results.by_url_id(database, id, 2) is None
    assert results.count(database, id) == 1


def test_pages_of_results_have_no_gap_and_no_overlap(database: Database) -> None:
    """The cursor follows the order of storing: a URL found early and stored late is not missed."""
    numbers = [*range(2, 26), 1]
    id = store(database, *(result(number) for number in numbers))
    store(database, result(1))
    first = results.page(database, id, wanted=5)
    second = results.page(database, id, after=first[-1].id, wanted=5)
    assert [each.url_id for each in first + second] == numbers[:10]
    assert [each.url_id for each in results.every(database, id, chunk=10)] == sorted(numbers)
    assert results.page(database, id, after=results.page(database, id)[-1].id) == []


@pytest.mark.parametrize(("size", "most"), [(10, 30), (300_000, 3), (2_000_000, 1)])
def test_large_results_are_read_a_few_at_a_time(
    database: Database, monkeypatch: pytest.MonkeyPatch, size: int, most: int
) -> None:
    """Five results of 200 MB in one page stopped every thread of the API for a minute."""
    monkeypatch.setattr(results, "READ_BYTES", 1_000_000)
    data = json.dumps({"markdown": Random(1).randbytes(size // 2).hex()})
    id = store(database, *(result(number, data=data) for number in range(1, 8)))
    stored: list[results.Result] = []
    while found := results.page(database, id, after=stored[-1].id if stored else 0, wanted=5):
        assert len(found) <= most
        stored += found
    discovered: list[results.Result] = []
    while found := results.page_by_discovery(database, id, after=len(discovered), wanted=5):
        assert len(found) <= most
        discovered += found
    assert [each.url_id for each in stored] == [each.url_id for each in discovered] == list(range(1, 8))


def test_the_cache_knows_a_page_under_both_urls(database: Database) -> None:
    id = store(
        database,
        result(1, original_url="http://x", original_key=ASKED, final_url="https://www.x/", final_key=LANDED),
    )
    since = database.now() - timedelta(hours=1)
    for key in (ASKED, LANDED):
        found = results.cached(database, key, since)
        assert found is not None
        assert (found.job_id, found.final_url) == (id, "https://www.x/")
    assert results.cached(database, 333, since) is None


def test_the_cache_gives_the_newest_whichever_url_matched(database: Database) -> None:
    since = database.now() - timedelta(hours=1)
    store(database, result(1, original_key=ASKED, final_key=LANDED, data='{"n":1}'))
    store(database, result(1, original_key=LANDED, final_key=LANDED, data='{"n":2}'))
    newest = results.cached(database, LANDED, since)
    assert newest is not None
    assert newest.data == {"n": 2}
    store(database, result(1, original_key=333, final_key=LANDED, data='{"n":3}'))
    newest = results.cached(database, LANDED, since)
    assert newest is not None
    assert newest.data == {"n": 3}


def test_the_cache_gives_nothing_old_and_nothing_failed(database: Database) -> None:
    store(database, result(1, original_key=ASKED, final_key=ASKED, data='{"n":1}'))
    store(database, result(1, original_key=ASKED, final_key=ASKED, success=False, data='{"n":2}'))
    good = results.cached(database, ASKED, database.now() - timedelta(hours=1))
    assert good is not None
    assert good.data == {"n": 1}
    assert results.cached(database, ASKED, database.now()) is None


def test_a_result_that_is_about_no_url_is_found_where_it_landed(database: Database) -> None:
    store(database, result(1, original_url=None, original_key=None, final_key=LANDED))
    found = results.cached(database, LANDED, database.now() - timedelta(hours=1))
    assert found is not None
    assert found.original_url is None


def test_the_cache_forgets_a_deleted_job(database: Database) -> None:
    id = store(database, result(1, original_key=ASKED))
    job_removal.delete(database, id)
    assert results.cached(database, ASKED, database.now() - timedelta(hours=1)) is None

"""Kept HTML: written with the checkpoint, read page by page, and removed with the job."""

import pytest

from silkline.errors import LeaseLost
from silkline.model.database import Database
from silkline.model.kept_html import NewDictionary, NewHtml
from silkline.model.ledger import Checkpoint
from silkline.store import html, job_removal, urls
from tests.store import given


def test_pages_and_dictionaries_come_back(database: Database) -> None:
    job = given.running(database)
    pages = [NewHtml(1, 0, 100, b"\x00\xff"), NewHtml(2, 5, 200, b"two")]
    first = Checkpoint(
        found=[given.url(1), given.url(2), given.url(3)],
        settled=[given.settled(1), given.settled(2)],
        results=[given.result(1), given.result(2)],
        html=pages,
        dictionaries=[NewDictionary(5, b"\x00words")],
    )
    urls.record(database, job, first)
    again = Checkpoint(
        settled=[given.settled(3)], html=[NewHtml(3, 5, 1, b"three")], dictionaries=[NewDictionary(5, b"x")]
    )
    urls.record(database, job, again)
    assert html.page(database, job.id, wanted=2) == pages
    assert [page.url_id for page in html.page(database, job.id, after=2)] == [3]
    assert html.by_url_id(database, job.id, 2) == pages[1]
    assert html.by_url_id(database, job.id, 9) is None
    assert html.dictionary(database, job.id, 5) == b"\x00words"
    assert html.dictionary(database, job.id, 6) is None


def test_an_attempt_that_lost_its_job_keeps_nothing(database: Database) -> None:
    job = given.running(database)
    assert given.rescued(database, job)
    with pytest.raises(LeaseLost):
        urls.record(database, job, Checkpoint(found=[given.url(1)], html=[NewHtml(1, 0, 1, b"x")]))
    assert html.page(database, job.id) == []


def test_html_goes_with_its_job(database: Database) -> None:
    job = given.running(database)
    checkpoint = Checkpoint(
        found=[given.url(1)],
        settled=[given.settled(1)],
        html=[NewHtml(1, 5, 1, b"x")],
        dictionaries=[NewDictionary(5, b"d")],
    )
    urls.record(database, job, checkpoint)
    given.finished(database, job)
    job_removal.delete(database, job.id)
    assert html.page(database, job.id) == []
    assert html.dictionary(database, job.id, 5) is None

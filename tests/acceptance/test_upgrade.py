"""A database of an older release, with jobs, ledgers and results: it is upgraded, and its paused crawl goes on."""

from collections import Counter
from contextlib import closing

import pytest

from silkline.model.job import Status
from silkline.model.url import url_key
from silkline.sample.server import SampleServer
from silkline.store import jobs, migrate, results, urls
from silkline.store.opening import open_database
from tests.acceptance.conftest import Silkline
from tests.support.older_database import moved, rows_of, store

REVISION = 8


def test_the_keys_of_urls_are_those_of_older_releases() -> None:
    """A key that changed would make an upgraded crawl fetch every page again."""
    rows = rows_of(REVISION)
    assert len(rows["crawl_urls"]) > 30
    assert [row["url"] for row in rows["crawl_urls"] if url_key(row["url"]) != row["url_key"]] == []


@pytest.mark.both_databases
def test_a_crawl_that_an_older_release_paused_goes_on(on_both: Silkline) -> None:
    database_url = on_both.database_url
    with SampleServer() as site:
        rows = moved(rows_of(REVISION), site.url)
        store(database_url, REVISION, rows)
        page, crawl = (job["id"] for job in rows["crawl_jobs"])

        with closing(open_database(database_url, upgrade=False)) as database:
            assert migrate.upgrade(database) == (REVISION, migrate.newest(database))
            found = [jobs.get(database, id) for id in (page, crawl)]
            assert [(job.kind, job.status) for job in found] == [("page", Status.COMPLETED), ("site", Status.PAUSED)]
            assert "Eleven people held the post" in results.page(database, page)[0].data["markdown"]
            before = list(results.every(database, crawl))
            assert len(before) == 8

        resumed = on_both("resume", crawl)
        assert resumed.code == 0, resumed

    with closing(open_database(database_url)) as database:
        assert jobs.get(database, crawl).status is Status.COMPLETED
        after = list(results.every(database, crawl))
        known = {each.id for each in before}
        assert [each for each in after if each.id in known] == before, "what was stored stays as it is"
        assert set(Counter(each.original_url for each in after).values()) == {1}, "and no page is fetched again"
        counts = urls.counts(database, crawl)
        assert (counts.discovered, counts.done, counts.failed, counts.skipped, counts.queued) == (43, 30, 3, 10, 0)

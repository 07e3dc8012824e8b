"""Which stored page the cache finds, by the outlines of the jobs that stored pages and redirects."""

from typing import Any

import pytest

from silkline.kinds import cache
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.ledger import REDIRECTED, SKIPPED, Checkpoint
from silkline.model.spec import PageSpec, validate
from silkline.model.url import url_key
from silkline.store import page_cache, urls
from tests.store.given import result, running, settled, url

PAGE, OLD = "https://example.com/1", "https://example.com/2"
LONG = ["https://long.example/" + "x" * 40_000]


def stored(database: Database, spec: dict[str, Any]) -> Job:
    """A job that has stored a page, and a redirect to it."""
    job = running(database, payload=spec)
    found = [url(1, url_key=url_key(PAGE)), url(2, url_key=url_key(OLD))]
    pages = [result(1, original_key=url_key(PAGE), final_key=url_key(PAGE))]
    ends = [settled(1), settled(2, SKIPPED, reason=REDIRECTED, detail=PAGE)]
    urls.record(database, job, Checkpoint(found=found, settled=ends, results=pages))
    return job


def found_for(database: Database, url: str, **asked: Any) -> Job | None:
    found = page_cache.fresh(database, url, {"max_age": 3_600, **asked}, is_external=lambda kind: False)
    return found[0] if found else None


@pytest.mark.parametrize("address", [PAGE, OLD])
def test_the_cache_reads_no_long_payload(database: Database, address: str) -> None:
    job = stored(database, {"urls": LONG, "user_agent": "Mobile/1"})
    with database.transaction() as transaction:
        transaction.script("UPDATE crawl_jobs SET payload = '\"unread\"'")
    assert found_for(database, address) is None
    found = found_for(database, address, user_agent="Mobile/1")
    assert found is not None
    assert (found.id, found.payload) == (job.id, {"urls": None, "user_agent": "Mobile/1"})


@pytest.mark.parametrize("address", [PAGE, OLD])
def test_a_job_whose_outline_lacks_a_field_of_the_rule_answers_for_nobody(database: Database, address: str) -> None:
    stored(database, {"url": PAGE, "allow_private": ["10.0.0.0/8"] * 4_000})
    assert found_for(database, address) is None
    job = stored(database, {"url": PAGE, "allow_private": None})
    found = found_for(database, address)
    assert found is not None, "null is a value of a short payload"
    assert found.id == job.id


@pytest.mark.parametrize("address", [PAGE, OLD])
def test_a_page_job_gets_pages_for_its_user_agent_and_its_robots_rules(database: Database, address: str) -> None:
    def usable(**spec: Any) -> bool:
        asked = validate(PageSpec, {"url": address, "max_age": 3_600, **spec})
        return cache.fresh(database, address, asked) is not None

    mobile, careless = {"user_agent": "Mobile/1"}, {"ignore_robots": True}
    stored(database, {"url": PAGE})
    assert (usable(), usable(**mobile), usable(**careless)) == (True, False, True)
    stored(database, {"url": PAGE, **mobile})
    assert (usable(), usable(**mobile)) == (False, True)
    stored(database, {"url": PAGE, **careless})
    assert (usable(), usable(**careless)) == (False, True)


@pytest.mark.parametrize("asked", [PAGE, OLD])
def test_a_page_of_another_url_with_the_same_key_is_not_used(database: Database, asked: str) -> None:
    """xxh3 is no secret: a URL with a chosen key is found in minutes."""
    job = running(database, payload={"url": "https://evil.example/"})
    found = [url(1, url="https://evil.example/1", url_key=url_key(PAGE)), url(2, url_key=url_key(OLD))]
    pages = [
        result(
            1,
            original_url="https://evil.example/1",
            final_url="https://evil.example/1",
            original_key=url_key(PAGE),
            final_key=url_key(PAGE),
        )
    ]
    ends = [settled(1), settled(2, SKIPPED, reason=REDIRECTED, detail=PAGE)]
    urls.record(database, job, Checkpoint(found=found, settled=ends, results=pages))
    assert found_for(database, asked) is None


def test_a_redirect_of_another_url_with_the_same_key_is_not_used(database: Database) -> None:
    job = running(database, payload={"url": "https://evil.example/"})
    found = [url(1, url_key=url_key(PAGE)), url(2, url="https://evil.example/2", url_key=url_key(OLD))]
    pages = [result(1, original_key=url_key(PAGE), final_key=url_key(PAGE))]
    ends = [settled(1), settled(2, SKIPPED, reason=REDIRECTED, detail=PAGE)]
    urls.record(database, job, Checkpoint(found=found, settled=ends, results=pages))
    assert found_for(database, PAGE) is not None
    assert found_for(database, OLD) is None

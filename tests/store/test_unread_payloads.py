"""Who needs no spec does not read it: it may have 16 MB. The long payloads of these tests are replaced by a text that
is no payload, after their short forms were stored."""

import json

import pytest

from silkline.errors import SpecError
from silkline.export.field_columns import columns_of
from silkline.export.links import LinkRow, links_of
from silkline.model.database import Database
from silkline.model.job import End, NewJob, Status, Verb, Wish
from silkline.model.ledger import Checkpoint
from silkline.runner import shard_parents
from silkline.store import idempotency, job_removal, jobs, shards, urls
from silkline.store.shard_checks import MOST_COPIED
from tests.store.given import finished, queued, result, running, settled, url

LONG = ["https://long.example/" + "x" * 40_000]


def unread(database: Database) -> None:
    """From now on, whoever reads a payload that has a short form fails."""
    with database.transaction() as transaction:
        transaction.script("UPDATE crawl_jobs SET payload = '\"unread\"' WHERE short_payload IS NOT NULL")


def test_no_worker_and_no_verb_reads_a_long_payload(database: Database) -> None:
    spec = {"urls": LONG, "fields": {"price": {"css": "." + "p" * 999}}, "each": "." + "r" * 999}
    shown = {**spec, "urls": None}
    id = queued(database, payload=spec, dedupe_key="one").id
    unread(database)
    (job,) = jobs.claim(database, "w1", "h", ["page"], 1)
    assert job.payload == shown
    assert [each.payload for each in jobs.running(database)] == [shown]
    again, new = jobs.enqueue(database, NewJob("page", spec, dedupe_key="one"))
    assert (again.id, again.payload, new) == (id, shown, False)
    assert [column.name for column in columns_of(database, id).columns] == ["price"]
    assert columns_of(database, id).rows, "it has `each`"
    assert jobs.wish(database, id, Verb.STOP).payload == shown
    assert finished(database, job, End.RELEASED).status is Status.STOPPED, "its wish had changed"
    assert jobs.wish(database, id, Verb.RETRY).status is Status.QUEUED
    assert jobs.wish(database, id, Verb.CANCEL).status is Status.CANCELLED
    assert job_removal.delete(database, id) == [id]


def test_no_download_of_links_reads_a_long_payload(database: Database) -> None:
    job = running(database, payload={"urls": LONG, "facts": ["links"]})
    link = {"url": "https://example.com/2", "text": "next", "rel": None}
    stored = [result(1, data=json.dumps({"outlinks": [link]}), final_url="https://example.com/1")]
    urls.record(database, job, Checkpoint([url(1)], [settled(1)], stored))
    unread(database)
    assert list(links_of(database, job.id)) == [
        LinkRow("https://example.com/1", "https://example.com/2", "next", None, None, None)
    ]


def test_no_decision_about_shards_reads_a_long_payload(postgres_database: Database) -> None:
    """Supervisors decide about a crawl several times a second, and lists have all its shards."""
    database = postgres_database
    spec = {"url": "https://example.com/", "urls": LONG, "shards": 3, "limit": 7, "depth": 2}
    shown = {**spec, "urls": None}
    id = queued(database, "site", payload=spec).id
    unread(database)
    (parent,) = jobs.claim(database, "w1", "h", ["site"], 1)
    assert shard_parents.start(database, parent)
    assert [(each.shard, each.payload) for each in shards.of(database, id)] == [(0, shown), (1, shown), (2, shown)]
    assert shards.ids_of(database, id) == [each.id for each in shards.of(database, id)]
    claimed = shards.claim(database, "w1", "h", id, 2)
    assert [each.payload for each in claimed] == [shown] * 2
    assert shard_parents.decide(database, id) is not None
    jobs.wish(database, id, Verb.STOP)
    for each in claimed:
        finished(database, each, End.RELEASED)
    verdict = shard_parents.decide(database, id)
    assert verdict is not None
    assert verdict.status is Status.STOPPED
    jobs.wish(database, id, Verb.RETRY)
    (parent,) = jobs.claim(database, "w1", "h", ["site"], 1)
    jobs.wish(database, id, Verb.CANCEL)
    assert not shard_parents.start(database, parent)
    assert {each.desired for each in shards.of(database, id)} == {Wish.STOP}
    finished(database, parent, End.CANCELLED)
    assert len(job_removal.delete(database, id)) == 4


def test_the_copies_of_a_spec_for_the_shards_have_a_limited_size(postgres_database: Database) -> None:
    database = postgres_database
    spec = {"url": "https://example.com/", "headers_for": ["https://a.example"] * 50_000}
    assert jobs.enqueue(database, NewJob("site", {**spec, "shards": 4}))[1]
    large = NewJob("site", {**spec, "shards": 256})
    words = rf"1,000,\d+ bytes.*256 shards, it can have {MOST_COPIED // 256:,} bytes.*longest field, headers_for$"
    with pytest.raises(SpecError, match=words):
        jobs.enqueue(database, large)
    with pytest.raises(SpecError, match=words):
        jobs.enqueue_many(database, [large])
    with pytest.raises(SpecError, match=words):
        idempotency.enqueue_once(database, large, key="k", fingerprint="f", answer=lambda job, fresh: "{}")
    assert len(jobs.page(database)) == 1

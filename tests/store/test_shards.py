"""Parents and shards in the database: who is woken, how a crawl goes on, and how its kept pages are read again."""

import logging
import select
from pathlib import Path

import pytest

from silkline.config import Settings
from silkline.crawl.kept_pages import SAMPLES, KeptPage, PageKeeper
from silkline.kinds.extract import stored_pages
from silkline.model.database import Database, WakeupListener
from silkline.model.job import End, Job, NewJob, Status, Verb
from silkline.model.kept_html import NewDictionary
from silkline.model.ledger import Checkpoint
from silkline.model.sharding import FINISHED, ShardProgress, ids_before
from silkline.runner.inline import run_here
from silkline.store import jobs, logs, pages, results, shard_links, shards, urls
from silkline.store.backlinks import out_of
from silkline.store.fleet import fleet
from silkline.store.job_counts import job_counts
from tests.store.given import finished, queued, result, settled, url
from tests.support.shop import product

EMPTY = Checkpoint(shard=ShardProgress())


def crawl(database: Database, number: int = 2) -> tuple[str, list[Job]]:
    """A parent, and its shards, which are all running."""
    parent = queued(database, "site", payload={"url": "https://example.com/", "shards": number})
    assert shards.open_shards(database, jobs.claim_one(database, "w1", "h", parent.id))
    return parent.id, [jobs.claim_one(database, "w1", "h", each.id) for each in shards.of(database, parent.id)]


def sending(receiver: int) -> Checkpoint:
    return Checkpoint(shard=ShardProgress(sent=[(receiver, 0, b"links")]))


def decide(database: Database, parent: str) -> str | None:
    verdict = shards.settle(database, parent, lambda database, ids: None)
    assert verdict is not None
    return verdict.ending


def heard_until(listener: WakeupListener, last: str) -> list[str]:
    """All notifications up to one that is known to come."""
    heard: list[str] = []
    while last not in heard:
        assert select.select([listener], [], [], 60)[0], f"nobody told of {last}; heard {heard}"
        heard += listener.drain()
    return heard


def test_links_wake_a_receiver_that_has_nothing_to_do(postgres_database: Database) -> None:
    _, several = crawl(postgres_database, 3)
    listener = postgres_database.listen("w1")
    urls.record(postgres_database, several[0], sending(1))
    assert heard_until(listener, several[1].id) == [several[1].id]
    busy = Checkpoint(found=[url(ids_before(1) + 1)], shard=ShardProgress())
    urls.record(postgres_database, several[1], busy)
    urls.record(postgres_database, several[0], sending(1))  # it has work, and will look for links by itself
    urls.record(postgres_database, several[0], sending(2))
    assert heard_until(listener, several[2].id) == [several[2].id]
    listener.close()


def test_the_end_of_a_crawl_wakes_all_its_shards(postgres_database: Database) -> None:
    parent, several = crawl(postgres_database)
    listener = postgres_database.listen("w1")
    for job in several:
        urls.record(postgres_database, job, EMPTY)
    assert decide(postgres_database, parent) == FINISHED
    assert set(heard_until(listener, several[-1].id)) >= {job.id for job in several}
    listener.close()


def test_a_crawl_that_was_finished_goes_on_with_urls_that_are_queued_again(postgres_database: Database) -> None:
    parent, (first, second) = crawl(postgres_database)
    found = [url(1), url(2)]
    ends = [settled(1), settled(2, "failed", reason="http_500")]
    urls.record(postgres_database, first, Checkpoint(found=found, settled=ends, shard=ShardProgress()))
    urls.record(postgres_database, second, EMPTY)
    assert decide(postgres_database, parent) == FINISHED
    finished(postgres_database, first)
    finished(postgres_database, second, End.PERMANENT)  # it died on its last metres
    decide(postgres_database, parent)
    assert jobs.get(postgres_database, parent).status is Status.FAILED
    assert urls.requeue(postgres_database, parent, "http_500") == 1
    jobs.wish(postgres_database, parent, Verb.RETRY)
    assert shards.open_shards(postgres_database, jobs.claim_one(postgres_database, "w1", "h", parent))
    assert {each.status for each in shards.of(postgres_database, parent)} == {Status.QUEUED}
    assert decide(postgres_database, parent) is None


@pytest.mark.parametrize("verb", [Verb.PAUSE, Verb.STOP, Verb.CANCEL])
def test_a_verb_reaches_shards_that_run_and_shards_that_wait(postgres_database: Database, verb: Verb) -> None:
    parent, (first, second) = crawl(postgres_database)
    finished(postgres_database, first, End.RELEASED)
    jobs.wish(postgres_database, parent, verb)
    assert shards.of(postgres_database, parent)[0].status in (Status.PAUSED, Status.STOPPED, Status.CANCELLED)
    assert shards.of(postgres_database, parent)[1].desired.value == verb.value
    finished(postgres_database, second, End.RELEASED)
    decide(postgres_database, parent)
    whole, *parts = [jobs.get(postgres_database, parent), *shards.of(postgres_database, parent)]
    assert [part.status for part in parts] == [whole.status] * 2
    assert whole.status not in (Status.RUNNING, Status.QUEUED)


def kept(database: Database, job: Job, number: int) -> list[bytes]:
    """Store some pages of a shard with their HTML; the bodies."""
    keeper, first = PageKeeper(), ids_before(job.shard or 0) + 1
    bodies = [product(job.shard * 1_000 + place).encode() for place in range(number)]  # type: ignore[operator]
    dictionaries: list[NewDictionary] = []
    html = []
    for id, body in enumerate(bodies, first):
        page, dictionary = keeper.keep(id, KeptPage("text/html", "utf-8", "", "", {}, body))
        html.append(page)
        dictionaries += [dictionary] if dictionary else []
    assert len(dictionaries) == 1
    ids = range(first, first + number)
    checkpoint = Checkpoint(
        found=[url(id) for id in ids],
        settled=[settled(id) for id in ids],
        results=[result(id) for id in ids],
        html=html,
        dictionaries=dictionaries,
        shard=ShardProgress(),
    )
    urls.record(database, job, checkpoint)
    return bodies


def test_kept_pages_of_all_shards_are_read_with_the_dictionary_of_each(
    postgres_database: Database, tmp_path: Path
) -> None:
    parent, several = crawl(postgres_database)
    bodies = [body for job in several for body in kept(postgres_database, job, SAMPLES + 6)]
    read = [page.page for page in stored_pages(postgres_database, tmp_path, parent)]
    assert [page.body for page in read if isinstance(page, KeptPage)] == bodies
    again = run_here(
        postgres_database,
        Settings(data=tmp_path),
        NewJob("extract", {"job": parent, "fields": {"heading": {"css": "h1"}}, "content": "none"}),
        logging.getLogger("test"),
    )
    assert again.status is Status.COMPLETED, again
    rows = list(results.every(postgres_database, again.id))
    assert len({row.data["fields"]["heading"] for row in rows}) == len(bodies)
    # Its ledger has the ids of the shards, which are far apart.
    ids = [row.url_id for row in rows]
    assert sorted(urls.by_ids(postgres_database, again.id, ids)) == sorted(ids)
    urls.index(postgres_database, again.id)
    listed: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        part = pages.search(postgres_database, again.id, state="done", cursor=cursor, wanted=40, stretch=50)
        listed, cursor = listed + part.ids, part.cursor
    assert listed == sorted(ids)
    assert out_of(postgres_database, urls.by_ids(postgres_database, again.id, ids)[ids[-1]]).urls == ()


def test_a_reader_that_follows_the_log_misses_no_line(postgres_database: Database) -> None:
    parent, several = crawl(postgres_database)
    now = postgres_database.now()
    with postgres_database.transaction() as slow:  # it takes the smaller id, and commits later
        logs.append_in(slow, [logs.NewLine(several[0].id, 1, "info", "first", now)])
        logs.append(postgres_database, [logs.NewLine(several[1].id, 1, "info", "second", now)])
        for _ in range(3):
            decide(postgres_database, parent)
        seen = logs.page(postgres_database, parent)
        assert "shard 1: second" not in [line.message for line in seen]
    for _ in range(2):
        decide(postgres_database, parent)
    seen += logs.page(postgres_database, parent, after=seen[-1].id if seen else 0)
    assert [line.message for line in seen][-2:] == ["shard 0: first", "shard 1: second"]
    assert [line.shard for line in seen][-2:] == [0, 1]


def test_the_fleet_runs_shards_and_counts_each_once(postgres_database: Database) -> None:
    _, several = crawl(postgres_database)
    for job in several:
        found = [url(ids_before(job.shard or 0) + 1)]
        urls.record(postgres_database, job, Checkpoint(found=found, live={"rate": 2.5}, shard=ShardProgress()))
    seen = fleet(postgres_database, [])
    assert [(job.id, job.shard) for job in seen.jobs] == [(job.id, job.shard) for job in several]
    assert (seen.running, seen.rate, seen.pending_urls) == (2, 5.0, 2)
    assert job_counts(postgres_database).by_kind == {("site", "running"): 1}


def test_cursors_never_move_back(postgres_database: Database) -> None:
    _, (_, second) = crawl(postgres_database)
    urls.record(postgres_database, second, Checkpoint(shard=ShardProgress(taken=[(0, 2)])))
    with pytest.raises(Exception, match="taken in twice"):
        urls.record(postgres_database, second, Checkpoint(shard=ShardProgress(taken=[(0, 1)])))
    assert shard_links.cursors(postgres_database, second) == {0: 2}


def test_links_that_were_taken_in_are_removed_at_the_end(postgres_database: Database) -> None:
    parent, (first, second) = crawl(postgres_database)
    urls.record(postgres_database, first, sending(1))
    (row,) = shard_links.arrived(postgres_database, second, {0: 0}, most=9)
    urls.record(postgres_database, second, Checkpoint(shard=ShardProgress(taken=[(0, row.number)])))
    assert len(shard_links.arrived(postgres_database, second, {0: 0}, most=9)) == 1, "too few to be removed before"
    assert decide(postgres_database, parent) == FINISHED
    for job in (first, second):
        finished(postgres_database, job)
    decide(postgres_database, parent)
    assert jobs.get(postgres_database, parent).status is Status.COMPLETED
    assert shard_links.arrived(postgres_database, second, {0: 0}, most=9) == []

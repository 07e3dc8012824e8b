"""One crawl in several shards, with real workers: it looks like one crawl, whatever number of slots there is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from silkline.errors import NotFound, Refused
from silkline.model.job import LIVE, NewJob, Status, Verb
from silkline.store import job_removal, jobs, pages, results, shards, urls, workers
from silkline.store.explain import explain
from tests.crawl.harness import Crawl, SyntheticWeb, assert_links_are_those_of, closing
from tests.support.postgres import PostgresDatabases
from tests.support.supervisors import SupervisorProcess, Yard, eventually
from tests.support.supervisors import yard as open_yard


@pytest.fixture
def yard(postgres_url: str, tmp_path: Path) -> Iterator[Yard]:
    with open_yard(postgres_url, tmp_path) as place:
        yield place


@pytest.fixture(scope="module")
def shared(postgres: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A worker with three slots, for the tests that need no other."""
    url = postgres.create_database()
    with open_yard(url, tmp_path_factory.mktemp("shards")) as place:
        place.start(slots=3)
        yield place
    postgres.drop_database(url)


@pytest.fixture(scope="module")
def web() -> Iterator[SyntheticWeb]:
    with closing(SyntheticWeb(hosts=9, pages=6)) as served:
        yield served


def crawl(yard: Yard, web: SyntheticWeb, **payload: Any) -> str:
    more = {"speed": "max", "allow_private": ["127.0.0.0/8"], "content": "none", "scope": "any", "shards": 3}
    new = NewJob("site", {"url": web.start, **more, **payload}, request_url=web.start, max_retries=1000)
    return jobs.enqueue(yard.database, new)[0].id


def stored(yard: Yard, id: str) -> Counter[str]:
    return Counter(result.final_url for result in results.every(yard.database, id))


def test_a_worker_with_one_slot_finishes_a_crawl_of_three_shards(yard: Yard) -> None:
    with closing(SyntheticWeb(hosts=4, pages=2)) as small:
        id = crawl(yard, small)
        yard.start(slots=1)
        job = yard.wait_for_end([id])[0]
        assert job.status is Status.COMPLETED, job
        assert stored(yard, id) == dict.fromkeys(small.reachable(), 1)
        assert {shard.status for shard in shards.of(yard.database, id)} == {Status.COMPLETED}


def test_a_reader_sees_one_crawl(shared: Yard, web: SyntheticWeb, tmp_path: Path) -> None:
    yard, database = shared, shared.database
    id = crawl(yard, web)
    followed: list[results.Result] = []
    while yard.job(id).status in LIVE:  # a client that follows the crawl gets every result, whoever stores it when
        followed += results.page(database, id, after=followed[-1].id if followed else 0, wanted=7)
        time.sleep(0.02)  # the crawl needs the machine too
    while more := results.page(database, id, after=followed[-1].id, wanted=50):
        followed += more
    assert Counter(result.final_url for result in followed) == dict.fromkeys(web.reachable(), 1)
    assert stored(yard, id) == dict.fromkeys(web.reachable(), 1)
    with closing(Crawl(tmp_path, url=yard.url)) as whole:
        whole.job = yard.job(id)
        whole.assert_books_balance()
        assert_links_are_those_of(web, whole)
        for url, row in list(whole.ledger().items())[::5]:
            found = explain(database, id, url)
            assert (found.url.id, found.path[0].url, found.path[-1].url) == (row.id, web.start, url)
            assert found.result is not None
            assert found.result.final_url == url
    by_size = pages.search(database, id, sort="-size", wanted=1_000).ids
    done: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        part = pages.search(database, id, state="done", cursor=cursor, wanted=9)
        done, cursor = done + part.ids, part.cursor
    assert sorted(by_size) == done == [row.id for row in urls.page(database, id, wanted=1_000)]
    lines = yard.lines(id)
    assert "the crawl runs in 3 shards" in lines
    assert all(f"shard {shard}: crawling with 1 fetcher " in lines for shard in range(3))
    listed = jobs.page(database)
    assert id in [job.id for job in listed]
    assert [job.shard for job in listed] == [None] * len(listed)
    assert jobs.counts(database)[Status.COMPLETED] == sum(job.status is Status.COMPLETED for job in listed)


def test_the_limit_is_exact_and_the_rest_is_accounted_for(yard: Yard, web: SyntheticWeb) -> None:
    id = crawl(yard, web, limit=23)
    yard.start("one", slots=2)
    yard.start("two", slots=2)
    job = yard.wait_for_end([id])[0]
    assert (job.status, job.exit_reason) == (Status.COMPLETED, "over_limit"), job
    counts = urls.counts(yard.database, id)
    assert (counts.done, sum(stored(yard, id).values())) == (23, 23)
    assert set(stored(yard, id).values()) == {1}
    assert counts.queued + counts.in_flight == 0
    assert yard.adds_up(id)
    known = {row.url for row in urls.page(yard.database, id, wanted=10_000)}
    for page in stored(yard, id):
        place = next(place for place in web.web.links if web.web.url(place, web.port) == page)
        assert {web.web.url(target, web.port) for target in web.web.links[place]} <= known


def test_depth_goes_level_by_level_over_all_shards(shared: Yard, web: SyntheticWeb) -> None:
    yard, id = shared, crawl(shared, web, depth=3)
    assert yard.wait_for_end([id])[0].status is Status.COMPLETED
    depth, level = {web.web.start: 0}, [web.web.start]
    for step in (1, 2, 3):
        level = [target for place in level for target in web.web.links[place] if target not in depth]
        depth |= dict.fromkeys(level, step)
    expected = {web.web.url(place, web.port): steps for place, steps in depth.items()}
    found = {row.url: row.depth for row in urls.page(yard.database, id, wanted=10_000) if row.state == "done"}
    assert found == expected


def test_a_verb_on_the_parent_reaches_all_shards(shared: Yard, web: SyntheticWeb) -> None:
    yard, id = shared, crawl(shared, web)
    web.slow_after(10)
    yard.wait_for_results(id, 3)
    jobs.wish(yard.database, id, Verb.PAUSE)
    yard.wait_for(id, Status.PAUSED)
    assert {shard.status for shard in shards.of(yard.database, id)} == {Status.PAUSED}
    with pytest.raises(Refused, match="shard 0 of the crawl"):
        jobs.wish(yard.database, shards.of(yard.database, id)[0].id, Verb.RESUME)
    jobs.wish(yard.database, id, Verb.RESUME)
    eventually("the shards run again", lambda: any(each.worker_id for each in shards.of(yard.database, id)))
    jobs.wish(yard.database, id, Verb.STOP)
    yard.wait_for(id, Status.STOPPED)
    assert {shard.status for shard in shards.of(yard.database, id)} == {Status.STOPPED}
    web.slow_after(None)
    jobs.wish(yard.database, id, Verb.RETRY)
    assert yard.wait_for_end([id])[0].status is Status.COMPLETED
    assert stored(yard, id) == dict.fromkeys(web.reachable(), 1)
    job_removal.delete(yard.database, id)
    with pytest.raises(NotFound):
        yard.job(id)
    assert shards.of(yard.database, id) == []


def test_a_crawl_whose_seed_fails_fails_and_can_be_retried(shared: Yard, web: SyntheticWeb) -> None:
    missing = web.start.replace("/page/0", "/nothing")
    yard, id = shared, crawl(shared, web, url=missing, shards=2)
    job = yard.wait_for_end([id])[0]
    assert job.status is Status.FAILED
    assert f"every seed failed: {missing} (http_404" in (job.error_message or "")
    jobs.wish(yard.database, id, Verb.RETRY)
    eventually("it tries again", lambda: yard.job(id).attempt > job.attempt and yard.job(id).status is Status.FAILED)


@pytest.fixture
def large_web() -> Iterator[SyntheticWeb]:
    """Its crawl takes longer than a test, and every shard has hosts, so that every shard has work all the time."""
    with closing(SyntheticWeb(hosts=60, pages=20)) as served:
        yield served


def test_a_worker_that_joins_gets_its_share_and_one_that_leaves_hands_over(yard: Yard, large_web: SyntheticWeb) -> None:
    id = crawl(yard, large_web, delay=3.0, shards=4)
    first = yard.start("one", slots=4, balance_interval=0.3)
    eventually("one worker has all shards", lambda: holders(yard, id).most_common() == [(worker_of(yard, first), 4)])
    second = yard.ready(yard.start("two", slots=4, balance_interval=0.3))
    eventually("both have two", lambda: sorted(holders(yard, id).values()) == [2, 2])
    retries = {(shard.retry_count, shard.crash_count) for shard in shards.of(yard.database, id)}
    assert retries == {(0, 0)}
    assert first.terminate() == 0
    eventually("the other has all", lambda: holders(yard, id) == {worker_of(yard, second): 4})
    jobs.wish(yard.database, id, Verb.CANCEL)
    yard.wait_for(id, Status.CANCELLED)


def holders(yard: Yard, id: str) -> Counter[str]:
    return Counter(shard.worker_id for shard in shards.of(yard.database, id) if shard.worker_id)


def worker_of(yard: Yard, supervisor: SupervisorProcess) -> str:
    found = [worker.id for worker in workers.everyone(yard.database) if worker.pid == supervisor.process.pid]
    return found[0] if found else ""

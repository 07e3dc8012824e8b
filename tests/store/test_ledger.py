"""The ledger: checkpoints that happen whole or not at all, counters that always add up, cursors, another chance."""

import threading

import pytest

from silkline.api.requeue import requeue
from silkline.errors import LeaseLost, Refused, StoreError
from silkline.model.database import Database
from silkline.model.job import End, Job, Status, Verb
from silkline.model.ledger import STATES, Checkpoint, Counts, NewUrl
from silkline.store import jobs, map_sitemaps, results, urls
from tests.store.given import NOWHERE, finished, queued, rescued, result, running, settled, url


def adds_up(database: Database, job: Job) -> Counts:
    counted = urls.counts(database, job.id)
    tally = urls.tally(database, job.id)
    assert counted.queued + counted.in_flight == tally["queued"]
    assert (counted.done, counted.unchanged) == (tally["done"], tally["unchanged"])
    assert (counted.failed, counted.skipped) == (tally["failed"], tally["skipped"])
    assert counted.discovered == sum(tally.values())
    return counted


def nothing_written(database: Database, job: Job) -> bool:
    return urls.page(database, job.id) == [] and results.count(database, job.id) == 0


def test_a_job_without_a_ledger_counts_nothing(database: Database) -> None:
    job = running(database)
    assert urls.counts(database, job.id) == Counts()
    assert urls.tally(database, job.id) == dict.fromkeys(STATES, 0)
    assert urls.last_id(database, job.id) == 0


def test_a_checkpoint_stores_results_urls_and_counters(database: Database) -> None:
    job = running(database)
    found = [
        url(1),
        url(2, depth=1, found_on=1, found_via="link"),
        url(3, state="skipped", reason="robots", detail="Disallow: /"),
        url(4),
    ]
    counted = urls.record(
        database,
        job,
        Checkpoint(
            found,
            [settled(1, http_status=200), settled(2, "failed", reason="http_404", http_status=404, attempts=3)],
            [result(1)],
            bytes=5000,
            in_flight=1,
            seconds=1.5,
            live={"rate": 10.5, "host": "bücher.example"},
        ),
    )
    assert counted == adds_up(database, job)
    assert (counted.discovered, counted.queued, counted.in_flight) == (4, 0, 1)
    assert (counted.done, counted.failed, counted.skipped, counted.unchanged) == (1, 1, 1, 0)
    assert (counted.bytes, counted.seconds, counted.checkpoints) == (5000, 1.5, 1)
    assert counted.live == {"rate": 10.5, "host": "bücher.example"}
    second = urls.by_id(database, job.id, 2)
    assert second is not None
    assert (second.state, second.reason, second.attempts, second.http_status) == ("failed", "http_404", 3, 404)
    assert (second.depth, second.found_on, second.found_via, second.url_key) == (1, 1, "link", 14)
    assert urls.by_id(database, job.id, 5) is None
    assert results.count(database, job.id) == 1


def test_checkpoints_add_to_each_other(database: Database) -> None:
    job = running(database)
    urls.record(database, job, Checkpoint([url(1)], bytes=10, seconds=1.0, in_flight=1, live={"a": 1}))
    urls.record(database, job, Checkpoint([url(2), url(3)], [settled(1, "unchanged")], bytes=5, seconds=0.5))
    counted = adds_up(database, job)
    assert (counted.discovered, counted.queued, counted.unchanged, counted.in_flight) == (3, 2, 1, 0)
    assert (counted.bytes, counted.seconds, counted.checkpoints, counted.live) == (15, 1.5, 2, {})


def test_an_empty_checkpoint_is_a_sign_of_life(database: Database) -> None:
    job = running(database)
    counted = urls.record(database, job, Checkpoint())
    assert (counted.checkpoints, counted.discovered) == (1, 0)
    assert counted.updated_at is not None


def test_in_flight_is_never_more_than_what_is_pending(database: Database) -> None:
    job = running(database)
    counted = urls.record(database, job, Checkpoint([url(1)], in_flight=9))
    assert (counted.queued, counted.in_flight) == (0, 1)


def test_another_try_leaves_a_url_queued_and_counts_its_attempts(database: Database) -> None:
    job = running(database)
    urls.record(database, job, Checkpoint([url(1)], [settled(1, "queued", reason="timeout", attempts=2)]))
    adds_up(database, job)
    (waiting,) = urls.queued(database, job.id)
    assert (waiting.id, waiting.url_key, waiting.url) == (1, 7, "https://example.com/1")
    assert (waiting.host, waiting.depth, waiting.attempts, waiting.found_via) == ("example.com", 0, 2, "seed")


@pytest.mark.parametrize("state", ["queued", "done"])
def test_a_shorter_path_changes_the_depth_of_a_queued_url(database: Database, state: str) -> None:
    job = running(database)
    found = [url(1, depth=5, found_via="foreign"), url(2, depth=5)]
    urls.record(database, job, Checkpoint(found))
    results_of = [result(1)] if state == "done" else []
    urls.record(database, job, Checkpoint([], [settled(1, state, depth=2), settled(2, "queued")], results_of))
    assert [(row.depth, row.state) for row in urls.page(database, job.id)] == [(2, state), (5, "queued")]
    adds_up(database, job)


def test_redirects_to_other_hosts_count_for_the_host_that_redirects(database: Database) -> None:
    job = running(database)
    there = {"host": "other.example", "found_via": "foreign"}
    found = [url(1), url(2, depth=1), url(3, depth=1, found_on=2, **there)]
    found.append(url(4, found_on=1, **{**there, "found_via": "redirect"}))  # a seed leads there
    moved = [settled(id, "skipped", reason="redirected", detail=url(id + 1).url) for id in (1, 2)]
    urls.record(database, job, Checkpoint(found, moved))
    assert urls.bytes_by_source(database, job.id, 100, 0) == [("example.com", 100 + len(url(3).url))]


def test_how_a_url_was_reached_outlives_tries_that_failed(database: Database) -> None:
    job = running(database)
    chain = "https://a.example/ https://b.example/"
    urls.record(database, job, Checkpoint(found=[url(1, found_via="redirect", chain=chain), url(2)]))
    urls.record(database, job, Checkpoint(settled=[settled(1, "queued", reason="timeout", detail="no byte")]))
    assert [row.chain for row in urls.queued(database, job.id)] == [chain, None]
    urls.record(
        database, job, Checkpoint(settled=[settled(1, "failed", reason="timeout", detail="no byte", attempts=3)])
    )
    failed = urls.by_id(database, job.id, 1)
    assert failed is not None
    assert (failed.chain, failed.detail) == (chain, "no byte")
    urls.requeue(database, job.id, "timeout")
    assert [row.chain for row in urls.queued(database, job.id)] == [chain, None]


def test_a_url_may_be_tried_again_and_settled_within_one_checkpoint(database: Database) -> None:
    job = running(database)
    tries = [settled(1, "queued", attempts=1), settled(1, "queued", attempts=2), settled(1, "done", attempts=3)]
    counted = urls.record(database, job, Checkpoint([url(1)], tries, [result(1)]))
    adds_up(database, job)
    assert (counted.done, counted.queued) == (1, 0)
    row = urls.by_id(database, job.id, 1)
    assert row is not None
    assert (row.state, row.attempts) == ("done", 3)


BROKEN = {
    "a result twice": Checkpoint([url(2)], [settled(1)], [result(1), result(1)]),
    "a result that is there already": Checkpoint([url(2)], [settled(1)], [result(9)]),
    "a url that is there already": Checkpoint([url(1)]),
    "a url twice": Checkpoint([url(2), url(2)]),
    "settled but never found": Checkpoint([url(2)], [settled(77)]),
    "settled before": Checkpoint([url(2)], [settled(9)]),
    "settled twice": Checkpoint([url(2)], [settled(1), settled(1, "failed", reason="timeout")]),
    "found with a state nobody knows": Checkpoint([url(2, state="lost")]),
    "settled with a state nobody knows": Checkpoint([url(2)], [settled(1, "lost")]),
    "a result without its url": Checkpoint([url(2)], [settled(1)], [result(1, final_url=None)]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_failing_checkpoint_leaves_nothing(database: Database, name: str) -> None:
    job = running(database)
    urls.record(database, job, Checkpoint([url(1), url(9)], [settled(9)], [result(9)], bytes=10))
    before = (urls.page(database, job.id), urls.counts(database, job.id), list(results.every(database, job.id)))
    with pytest.raises(StoreError):
        urls.record(database, job, BROKEN[name])
    assert (urls.page(database, job.id), urls.counts(database, job.id), list(results.every(database, job.id))) == before
    adds_up(database, job)
    urls.record(database, job, Checkpoint([url(2)], [settled(1)], [result(1)]))
    adds_up(database, job)


def test_a_rescue_during_a_checkpoint_undoes_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last fence, whatever happened since the first look. (SQLite has one writer: nothing can happen there.)"""
    job = running(database)
    if database.dialect == "sqlite":
        assert rescued(database, job)
    write = urls.write

    def rescued_in_between(*arguments: object) -> Counts:
        counted = write(*arguments)  # type: ignore[arg-type]
        if database.dialect == "postgres":
            assert rescued(database, job)
        return counted

    monkeypatch.setattr(urls, "write", rescued_in_between)
    with pytest.raises(LeaseLost):
        urls.record(database, job, Checkpoint([url(1)], [settled(1)], [result(1)]))
    assert nothing_written(database, job)
    assert urls.counts(database, job.id) == Counts()


def test_seeds_are_put_into_the_ledger_before_the_job_starts(database: Database) -> None:
    job = queued(database, paused=True)
    urls.seed(database, job.id, [url(id) for id in range(1, 1001)])
    urls.seed(database, job.id, [url(id) for id in range(1001, 1501)])
    assert adds_up(database, job).queued == 1500
    assert urls.last_id(database, job.id) == 1500


def test_pages_of_the_ledger_follow_the_order_of_discovery(database: Database) -> None:
    job = queued(database)
    states = ["queued", "skipped"]
    urls.seed(database, job.id, [url(id, state=states[id % 2], reason=None) for id in range(1, 26)])
    seen: list[int] = []
    while page := urls.page(database, job.id, after=seen[-1] if seen else 0, wanted=10):
        seen += [each.id for each in page]
    assert seen == list(range(1, 26))
    assert [each.id for each in urls.page(database, job.id, state="skipped", after=5, wanted=3)] == [7, 9, 11]
    assert [each.id for each in urls.queued(database, job.id, after=5, wanted=3)] == [6, 8, 10]


def test_own_and_foreign_urls_are_read_separately(database: Database) -> None:
    job = queued(database)
    vias = ["link", "foreign", "robots", "seed"]
    urls.seed(database, job.id, [url(id, found_via=vias[id % 4]) for id in range(1, 13)])
    own = urls.queued_part(database, job.id, foreign=False, after=2, wanted=4)
    assert [(each.id, each.found_via) for each in own] == [(3, "seed"), (4, "link"), (6, "robots"), (7, "seed")]
    others = urls.queued_part(database, job.id, foreign=True, after=2, wanted=3)
    assert [(each.id, each.found_via) for each in others] == [(5, "foreign"), (6, "robots"), (9, "foreign")]


def test_the_seen_set_is_rebuilt_in_chunks(database: Database) -> None:
    job = queued(database)
    urls.seed(database, job.id, [url(id) for id in range(1, 26)])
    chunks = list(urls.every(database, job.id, chunk=10))
    assert [len(chunk) for chunk in chunks] == [10, 10, 5]
    assert [row for chunk in chunks for row in chunk] == [(url(id).url, "example.com", "seed") for id in range(1, 26)]


def test_every_64_bit_key_is_kept(database: Database) -> None:
    job = queued(database)
    extremes = [-(2**63), -1, 0, 1, 2**63 - 1]
    urls.seed(database, job.id, [url(id, url_key=key) for id, key in enumerate(extremes, 1)])
    urls.index(database, job.id)
    for id, key in enumerate(extremes, 1):
        found = urls.by_key(database, job.id, key, url(id).url)
        assert found is not None
        assert (found.id, found.url_key) == (id, key)


def test_a_url_is_found_by_its_key_before_and_after_the_index_is_built(database: Database) -> None:
    job, other = queued(database), queued(database)
    urls.seed(database, job.id, [url(id) for id in range(1, 26)])
    urls.seed(database, other.id, [url(1, url_key=14)])
    before = urls.by_key(database, job.id, 14, url(2).url)
    assert before is not None
    assert before.id == 2
    for _ in range(2):
        urls.index(database, job.id, chunk=10)
    assert len(database.rows("urls.by_indexed_key", job_id=job.id, url_key=14, url=url(2).url)) == 1
    assert database.rows("urls.by_indexed_key", job_id=other.id, url_key=14, url=url(1).url) == []
    assert urls.by_key(database, job.id, 14, url(2).url) == before
    assert urls.by_key(database, job.id, 15, url(2).url) is None
    urls.seed(database, job.id, [url(26)])
    assert urls.by_key(database, job.id, 26 * 7, url(26).url) is not None


@pytest.mark.parametrize("indexed", [True, False])
def test_urls_with_the_same_key_are_told_apart(database: Database, indexed: bool) -> None:
    job = queued(database)
    urls.seed(database, job.id, [url(id, url_key=14) for id in (1, 2, 3)])
    if indexed:
        urls.index(database, job.id)
    for id in (1, 2, 3):
        found = urls.by_key(database, job.id, 14, url(id).url)
        assert found is not None
        assert found.id == id
    assert urls.by_key(database, job.id, 14, url(4).url) is None


def test_reasons_are_counted_most_frequent_first(database: Database) -> None:
    job = queued(database)
    reasons = ["robots"] * 3 + ["http_404"] * 2 + ["trap"]
    states = {"robots": "skipped", "http_404": "failed", "trap": "skipped"}
    urls.seed(database, job.id, [url(id, state=states[why], reason=why) for id, why in enumerate(reasons, 1)])
    assert urls.reasons(database, job.id) == [
        ("skipped", "robots", 3),
        ("failed", "http_404", 2),
        ("skipped", "trap", 1),
    ]


def failed_job(database: Database) -> Job:
    job = running(database)
    urls.record(
        database,
        job,
        Checkpoint(
            [url(id) for id in range(1, 31)],
            [settled(id, "failed", reason="timeout" if id % 3 else "http_500", attempts=4) for id in range(1, 31)],
            [result(id, success=False, data="{}") for id in range(1, 31)],
        ),
    )
    return job


def test_urls_that_failed_for_one_reason_get_another_chance(database: Database) -> None:
    job = failed_job(database)
    assert urls.requeue(database, job.id, "timeout", chunk=7) == 20
    counted = adds_up(database, job)
    assert (counted.queued, counted.failed) == (20, 10)
    first = urls.by_id(database, job.id, 1)
    assert first is not None
    assert (first.state, first.reason, first.attempts) == ("queued", None, 0)
    assert urls.requeue(database, job.id, "timeout") == 0
    assert urls.requeue(database, job.id, "no such reason") == 0
    assert urls.requeue(database, NOWHERE, "timeout") == 0


def test_what_got_another_chance_can_bring_a_result_again(database: Database) -> None:
    job = failed_job(database)
    urls.requeue(database, job.id, "timeout")
    assert results.count(database, job.id) == 10
    urls.record(database, job, Checkpoint(settled=[settled(1)], results=[result(1)]))
    adds_up(database, job)
    found = results.by_url_id(database, job.id, 1)
    assert found is not None
    assert found.success


def test_requeueing_twice_at_the_same_time_counts_once(database: Database) -> None:
    job = failed_job(database)
    moved: list[int] = []
    barrier = threading.Barrier(4)

    def requeue() -> None:
        barrier.wait()
        moved.append(urls.requeue(database, job.id, "timeout"))

    threads = [threading.Thread(target=requeue) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(moved) == 20
    adds_up(database, job)


def test_counters_of_several_jobs_come_at_once(database: Database) -> None:
    first, second, third = (queued(database) for _ in range(3))
    urls.seed(database, first.id, [url(1)])
    urls.seed(database, second.id, [url(1), url(2)])
    several = urls.counts_of(database, [first.id, second.id, third.id, NOWHERE])
    assert {id: counted.discovered for id, counted in several.items()} == {first.id: 1, second.id: 2}
    assert urls.counts_of(database, []) == {}


def test_pending_urls_of_running_jobs_are_summed_without_the_ledger(database: Database) -> None:
    job, waiting = running(database), queued(database)
    urls.record(database, job, Checkpoint([url(1), url(2), url(3)], [settled(1)]))
    urls.seed(database, waiting.id, [url(1)])
    assert database.rows("jobs.pending_total")[0]["urls"] == 2


def test_nothing_is_in_flight_when_nobody_runs(database: Database) -> None:
    job = running(database, max_retries=0)
    live = {"in_flight": ["https://a.example/"], "waits": [], "rate": 3.0}
    found = [NewUrl(id, id, f"https://a.example/{id}", "a.example", 0) for id in range(1, 8)]
    urls.record(database, job, Checkpoint(found=found, in_flight=5, live=live))
    assert (urls.counts(database, job.id).queued, urls.counts(database, job.id).in_flight) == (2, 5)
    finished(database, job, End.CRASHED, message="killed")
    assert jobs.get(database, job.id).status is Status.FAILED
    for counts in (urls.counts(database, job.id), urls.counts_of(database, [job.id])[job.id]):
        assert (counts.queued, counts.in_flight) == (7, 0)
        assert counts.live == {"rate": 3.0}


def test_the_results_of_each_sitemap_are_counted(database: Database) -> None:
    job = running(database)
    found = [
        url(1, found_via="robots", chain="for-a.example"),
        url(2, found_via="robots"),
        *(url(id, depth=1, found_on=1 if id < 5 else 2, found_via="sitemap") for id in range(3, 7)),
    ]
    ends = [settled(1, "skipped", reason="sitemap"), settled(3), settled(4), settled(5, "skipped", reason="over_limit")]
    urls.record(database, job, Checkpoint(found, ends, [result(3), result(4)]))
    assert map_sitemaps.listed(database, job.id) == [(found[0].url, "for-a.example", 2)]


def test_a_job_that_was_resumed_meanwhile_is_not_requeued(database: Database) -> None:
    """The running attempt would not learn of these URLs."""
    job, failed = running(database), [settled(id, "failed", reason="timeout") for id in range(1, 6)]
    urls.record(database, job, Checkpoint([url(each.id) for each in failed], failed))
    jobs.wish(database, job.id, Verb.PAUSE)
    finished(database, job, End.PAUSED)
    paused = jobs.get(database, job.id)
    jobs.wish(database, job.id, Verb.RESUME)
    with pytest.raises(Refused, match="queued now"):
        requeue(database, paused, "timeout")
    job = jobs.claim_one(database, "w1", "h", job.id)
    with pytest.raises(Refused, match="running now"):
        requeue(database, paused, "timeout")
    assert adds_up(database, job).queued == 0
    jobs.wish(database, job.id, Verb.PAUSE)
    finished(database, job, End.PAUSED)
    requeue(database, paused, "timeout")
    assert adds_up(database, job).queued == 5

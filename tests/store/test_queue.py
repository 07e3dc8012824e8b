"""How jobs come in and in which order they are taken: enqueue, claim, claim_one, next_due."""

from datetime import timedelta

import pytest

from silkline.errors import NotFound, Refused
from silkline.model.database import Database
from silkline.model.job import End, NewJob, Status, Verb, Wish
from silkline.store import jobs
from tests.store.given import NOWHERE, claimed, finished, queued, running, tomorrow


def test_a_stored_job_comes_back_as_it_was_given(database: Database) -> None:
    run_at = tomorrow(database)
    job = queued(
        database,
        "site",
        payload={"url": "https://example.com", "limit": 5, "nested": {"deep": [1, 2.5, None, True]}},
        request_url="https://example.com",
        metadata={"mine": "yes"},
        priority=7,
        tenant="acme",
        run_at=run_at,
        dedupe_key="one",
        parent_id=NOWHERE,
        max_retries=9,
    )
    assert (job.kind, job.status, job.desired) == ("site", Status.QUEUED, Wish.RUN)
    assert job.payload == {"url": "https://example.com", "limit": 5, "nested": {"deep": [1, 2.5, None, True]}}
    assert (job.request_url, job.metadata, job.priority) == ("https://example.com", {"mine": "yes"}, 7)
    assert (job.tenant, job.run_at, job.dedupe_key, job.parent_id) == ("acme", run_at, "one", NOWHERE)
    assert (job.max_retries, job.attempt, job.run_lease, job.worker_id) == (9, 0, 0, None)
    assert job.created_at == job.updated_at
    assert job.created_at.tzinfo is not None
    assert job == jobs.get(database, job.id)


def test_many_jobs_are_stored_in_order(database: Database) -> None:
    ids = jobs.enqueue_many(database, [NewJob("page", {"n": number}) for number in range(300)])
    assert len(set(ids)) == 300
    assert ids == sorted(ids)
    assert [job.payload["n"] for job in reversed(jobs.page(database, wanted=300))] == list(range(300))


def test_no_jobs_are_stored_without_a_word(database: Database) -> None:
    assert jobs.enqueue_many(database, []) == []


def test_a_job_may_be_stored_paused(database: Database) -> None:
    job = queued(database, paused=True)
    assert (job.status, job.desired) == (Status.PAUSED, Wish.PAUSE)
    assert jobs.claim(database, "w1", "h", ["page"], 1) == []


@pytest.mark.parametrize("status", ["queued", "running", "paused"])
def test_a_dedupe_key_of_a_live_job_gives_that_job(database: Database, status: str) -> None:
    first = queued(database, dedupe_key="same", paused=status == "paused")
    if status == "running":
        claimed(database)
    again, new = jobs.enqueue(database, NewJob("page", {"other": 1}, dedupe_key="same"))
    assert (again.id, again.status, new) == (first.id, status, False)
    assert len(jobs.page(database)) == 1


def test_each_tenant_has_dedupe_keys_of_its_own(database: Database) -> None:
    first = queued(database, dedupe_key="same", tenant="a")
    second, new = jobs.enqueue(database, NewJob("page", {}, dedupe_key="same", tenant="b"))
    assert new
    assert second.id != first.id
    for tenant, holder in (("a", first), ("b", second)):
        assert jobs.enqueue(database, NewJob("page", {}, dedupe_key="same", tenant=tenant)) == (holder, False)


def test_a_dedupe_key_of_an_ended_job_is_free_again(database: Database) -> None:
    first = running(database, dedupe_key="same")
    finished(database, first)
    second = queued(database, dedupe_key="same")
    assert second.id != first.id


def test_many_jobs_leave_out_those_whose_key_is_taken(database: Database) -> None:
    queued(database, dedupe_key="b")
    new = [NewJob("page", {}, dedupe_key=key) for key in ("a", "b", "c", "a", None, None)]
    stored = jobs.enqueue_many(database, new)
    assert [jobs.get(database, id).dedupe_key for id in stored] == ["a", "c", None, None]


def test_a_claim_makes_the_job_ours(database: Database) -> None:
    before = queued(database)
    job = claimed(database, "w1")
    assert job.id == before.id
    assert (job.status, job.worker_id, job.host, job.pid) == (Status.RUNNING, "w1", "host-1", None)
    assert (job.run_lease, job.attempt, job.heartbeat_seq) == (1, 1, before.heartbeat_seq + 1)
    assert job.started_at == job.last_heartbeat == job.updated_at
    assert job == jobs.get(database, job.id)


@pytest.mark.parametrize("wanted", [0, -1])
def test_nothing_is_claimed_when_nothing_is_wanted(database: Database, wanted: int) -> None:
    queued(database)
    assert jobs.claim(database, "w1", "h", ["page"], wanted) == []


def test_a_claim_takes_no_more_than_wanted(database: Database) -> None:
    jobs.enqueue_many(database, [NewJob("page", {})] * 5)
    assert len(jobs.claim(database, "w1", "h", ["page"], 3)) == 3
    assert len(jobs.claim(database, "w2", "h", ["page"], 3)) == 2
    assert jobs.claim(database, "w3", "h", ["page"], 3) == []


def test_only_the_kinds_asked_for_are_claimed(database: Database) -> None:
    site, page, plugin = queued(database, "site"), queued(database, "page"), queued(database, "my-plugin")
    assert jobs.claim(database, "w1", "h", [], 5) == []
    assert jobs.claim(database, "w1", "h", ["youtube"], 5) == []
    assert [job.id for job in jobs.claim(database, "w1", "h", ["page"], 5)] == [page.id]
    assert {job.id for job in jobs.claim(database, "w1", "h", ["my-plugin", "site"], 5)} == {site.id, plugin.id}


def test_the_highest_priority_goes_first_then_time_then_age(database: Database) -> None:
    now = database.now()
    late = queued(database, payload={"n": 4}, run_at=now)
    early = queued(database, payload={"n": 3}, run_at=now - timedelta(hours=1))
    low = queued(database, payload={"n": 5}, priority=-1, run_at=now - timedelta(days=1))
    urgent = queued(database, payload={"n": 1}, priority=5)
    urgent_too = queued(database, payload={"n": 2}, priority=5, run_at=urgent.run_at)
    order = [urgent, urgent_too, early, late, low]
    assert [claimed(database).id for _ in order] == [job.id for job in order]


def test_one_claim_of_many_gives_them_in_order(database: Database) -> None:
    expected = [queued(database, priority=priority).id for priority in (3, 2, 1)]
    assert [job.id for job in jobs.claim(database, "w1", "h", ["page"], 3)] == expected


def test_priority_counts_across_kinds_and_tenants(database: Database) -> None:
    queued(database, "page", tenant="a")
    best = queued(database, "site", tenant="z", priority=1)
    assert claimed(database).id == best.id


def test_tenants_take_turns(database: Database) -> None:
    for tenant in ("greedy", "greedy", "greedy", "modest", "shy"):
        queued(database, tenant=tenant)
    assert {claimed(database).tenant for _ in range(3)} == {"greedy", "modest", "shy"}
    assert [claimed(database).tenant for _ in range(2)] == ["greedy", "greedy"]


def test_tenants_take_turns_within_one_claim(database: Database) -> None:
    jobs.enqueue_many(database, [NewJob("page", {}, tenant="greedy")] * 20 + [NewJob("page", {}, tenant="shy")] * 2)
    taken = jobs.claim(database, "w1", "h", ["page"], 4)
    assert sorted(job.tenant for job in taken) == ["greedy", "greedy", "shy", "shy"]


def test_a_tenant_that_runs_less_goes_first(database: Database) -> None:
    for _ in range(2):
        running(database, tenant="busy")
    jobs.enqueue_many(database, [NewJob("page", {}, tenant="busy")] * 3 + [NewJob("page", {}, tenant="idle")] * 3)
    assert [claimed(database).tenant for _ in range(3)] == ["idle", "idle", "busy"]


def test_turns_are_counted_over_all_kinds_of_a_tenant(database: Database) -> None:
    for kind in ("page", "site", "map"):
        jobs.enqueue_many(database, [NewJob(kind, {}, tenant="many-kinds")] * 3)
    jobs.enqueue_many(database, [NewJob("page", {}, tenant="other")] * 2)
    taken = jobs.claim(database, "w1", "h", ["page", "site", "map"], 4)
    assert sorted(job.tenant for job in taken) == ["many-kinds", "many-kinds", "other", "other"]


def test_every_job_of_many_tenants_priorities_and_kinds_is_claimed_once(database: Database) -> None:
    new = [
        NewJob(("page", "site")[number % 2], {}, tenant=f"t{number % 7}", priority=number % 3) for number in range(210)
    ]
    ids = jobs.enqueue_many(database, new)
    taken: list[str] = []
    priorities: list[int] = []
    while batch := jobs.claim(database, "w1", "h", ["page", "site"], 11):
        taken += [job.id for job in batch]
        priorities += [job.priority for job in batch]
    assert sorted(taken) == sorted(ids)
    assert priorities == sorted(priorities, reverse=True)


def test_a_scheduled_job_waits_for_its_time(database: Database) -> None:
    later = queued(database, run_at=tomorrow(database))
    assert jobs.claim(database, "w1", "h", ["page"], 5) == []
    now = queued(database)
    assert [job.id for job in jobs.claim(database, "w1", "h", ["page"], 5)] == [now.id]
    assert jobs.get(database, later.id).status is Status.QUEUED


def test_scheduled_jobs_of_one_lane_do_not_hide_due_ones_of_another(database: Database) -> None:
    queued(database, priority=9, run_at=tomorrow(database))
    queued(database, tenant="a", run_at=tomorrow(database))
    due = queued(database, tenant="b")
    assert claimed(database).id == due.id


def test_next_due_is_the_next_time_in_the_future(database: Database) -> None:
    assert jobs.next_due(database) is None
    queued(database)
    assert jobs.next_due(database) is None
    times = [tomorrow(database) + timedelta(hours=hours) for hours in (3, 1, 2)]
    for time in times:
        queued(database, run_at=time)
    queued(database, run_at=min(times) - timedelta(hours=1), paused=True)
    assert jobs.next_due(database) == min(times)


def test_claim_one_takes_a_named_job_even_before_its_time(database: Database) -> None:
    queued(database)
    job = queued(database, run_at=tomorrow(database))
    mine = jobs.claim_one(database, "w1", "h", job.id)
    assert (mine.id, mine.status, mine.run_lease, mine.attempt) == (job.id, Status.RUNNING, 1, 1)


def test_claim_one_refuses_what_is_not_queued(database: Database) -> None:
    job = running(database)
    with pytest.raises(Refused, match="is running, not queued"):
        jobs.claim_one(database, "w2", "h", job.id)
    assert jobs.get(database, job.id) == job
    with pytest.raises(NotFound):
        jobs.claim_one(database, "w2", "h", NOWHERE)


def test_the_lease_rises_with_every_claim_and_the_first_start_is_kept(database: Database) -> None:
    job = running(database)
    finished(database, job, End.RELEASED)
    again = claimed(database, "w2")
    assert (again.run_lease, again.attempt, again.started_at) == (2, 2, job.started_at)


def test_a_claim_forgets_how_the_last_attempt_ended(database: Database) -> None:
    job = running(database)
    finished(database, job, End.PERMANENT, reason="bad_input", message="no")
    jobs.wish(database, job.id, Verb.RETRY)
    again = claimed(database)
    assert (again.exit_reason, again.finished_at, again.deadline_at) == (None, None, None)

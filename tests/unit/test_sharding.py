"""How a crawl over many machines continues and ends: one pure function of what the database says."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.model.job import Status, Wish
from silkline.model.sharding import (
    BROKEN,
    FINISHED,
    OVER_DURATION,
    OVER_LIMIT,
    Load,
    Shard,
    ShardedCrawl,
    gives_one,
    grant,
    ids_before,
    judge,
    level_of,
    shard_of_id,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUSY = Shard("a", 0, Status.RUNNING, False, pending=3, stored=1, allowed=0, lowest=None, inbox=None)
DONE = replace(BUSY, id="b", shard=1, pending=0)
CRAWL = ShardedCrawl("p", Wish.RUN, [BUSY, DONE], None, None, None, None, None, None, 0.0, NOW)


def test_it_goes_on_while_anything_is_left_anywhere() -> None:
    assert judge(CRAWL).ending is None
    assert judge(replace(CRAWL, shards=[DONE, DONE])).ending == FINISHED
    assert judge(replace(CRAWL, shards=[DONE, replace(DONE, inbox=4)])).ending is None
    assert judge(replace(CRAWL, shards=[DONE, replace(DONE, seeded=False)])).ending is None


def test_the_parent_completes_after_its_last_shard() -> None:
    ended = replace(DONE, status=Status.COMPLETED)
    assert judge(replace(CRAWL, ending=FINISHED, shards=[ended, DONE])).status is None
    assert judge(replace(CRAWL, ending=OVER_LIMIT, shards=[ended, ended])).status is Status.COMPLETED


def test_a_shard_without_work_sleeps_until_there_is_some() -> None:
    asleep = replace(DONE, status=Status.QUEUED, idle=True)
    assert judge(replace(CRAWL, shards=[BUSY, asleep])).wake == ()
    assert judge(replace(CRAWL, shards=[BUSY, replace(asleep, inbox=0)])).wake == ("b",)
    assert judge(replace(CRAWL, shards=[DONE, asleep])).wake == ("b",)  # to complete
    backing_off = replace(asleep, idle=False, inbox=0)
    assert judge(replace(CRAWL, shards=[BUSY, backing_off])).wake == ()


def test_a_shard_that_waits_for_a_depth_sleeps_until_it_is_due() -> None:
    deep = replace(BUSY, id="b", shard=1, status=Status.QUEUED, idle=True, lowest=2)
    shallow = replace(BUSY, lowest=1)
    assert level_of([shallow, deep]) == 1
    assert level_of([replace(shallow, lowest=3), replace(deep, seeded=False)]) == 0  # its seeds have depth 0
    assert judge(replace(CRAWL, depth=5, shards=[shallow, deep])).wake == ()
    assert judge(replace(CRAWL, depth=5, shards=[replace(shallow, lowest=2), deep])).wake == ("b",)
    on_its_way = replace(DONE, inbox=1)
    assert judge(replace(CRAWL, depth=5, shards=[on_its_way, replace(deep, shard=0)])).wake == ()


def test_the_limit_ends_it_only_when_it_is_reached() -> None:
    limited = replace(CRAWL, limit=10, remaining=0)
    five = replace(BUSY, stored=5, allowed=5)
    assert judge(replace(limited, shards=[five, replace(five, stored=4)])).ending is None
    assert judge(replace(limited, shards=[five, five])).ending == OVER_LIMIT


def test_pages_of_the_limit_come_back_from_a_shard_that_cannot_use_them() -> None:
    hoarding = replace(DONE, status=Status.QUEUED, idle=True, allowed=4)
    assert judge(replace(CRAWL, limit=10, remaining=0, shards=[BUSY, hoarding])).reclaim == ("b",)
    assert judge(replace(CRAWL, limit=10, remaining=0, shards=[BUSY, replace(DONE, allowed=4)])).reclaim == ()


def test_the_time_is_up() -> None:
    assert judge(replace(CRAWL, max_duration=60.0, seconds=59.9)).ending is None
    assert judge(replace(CRAWL, max_duration=60.0, seconds=60.0)).ending == OVER_DURATION


def test_a_failed_shard_fails_the_crawl_when_the_others_have_nothing_left() -> None:
    failed = replace(BUSY, id="f", shard=2, status=Status.FAILED, message="it crashed")
    assert judge(replace(CRAWL, shards=[BUSY, failed])).ending is None
    verdict = judge(replace(CRAWL, shards=[DONE, failed]))
    assert (verdict.ending, verdict.status) == (BROKEN, None)
    stopped = replace(DONE, status=Status.STOPPED)
    verdict = judge(replace(CRAWL, ending=BROKEN, shards=[stopped, failed]))
    assert (verdict.status, verdict.message) == (Status.FAILED, "shard 2 failed: it crashed")


@pytest.mark.parametrize(
    ("wish", "status"), [(Wish.PAUSE, Status.PAUSED), (Wish.STOP, Status.STOPPED), (Wish.CANCEL, Status.CANCELLED)]
)
def test_a_wish_is_a_fact_when_no_shard_runs_any_more(wish: Wish, status: Status) -> None:
    there = replace(DONE, status=status)
    assert judge(replace(CRAWL, desired=wish, shards=[BUSY, there])).status is None
    assert judge(replace(CRAWL, desired=wish, shards=[there, there])).status is status


@given(st.integers(1, 10_000), st.integers(1, 10**9), st.integers(1, 256))
def test_a_grant_is_never_more_than_there_is_and_never_nothing(wanted: int, remaining: int, shards: int) -> None:
    assert 1 <= grant(wanted, remaining, shards) <= min(wanted, remaining)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=1, max_size=5))
def test_balance_comes_to_rest(workers: list[tuple[int, int]]) -> None:
    """One shard at a time goes from the fullest to the emptiest, and never in circles."""
    loads = [Load(f"w{number}", min(held, slots), max(0, slots - held)) for number, (held, slots) in enumerate(workers)]
    for _ in range(40):
        givers = [load for load in loads if gives_one(loads, 0, load.worker_id)]
        assert len(givers) <= 1
        if not givers:
            break
        taker = min((load for load in loads if load.free), key=lambda load: load.shards)
        loads = [
            replace(load, shards=load.shards - 1, free=load.free + 1)
            if load is givers[0]
            else (replace(load, shards=load.shards + 1, free=load.free - 1) if load is taker else load)
            for load in loads
        ]
    else:
        raise AssertionError(f"still moving: {loads}")
    free = [load.shards for load in loads if load.free]
    assert not free or max(load.shards for load in loads) - min(free) <= 1


def test_nothing_moves_while_a_shard_is_on_its_way() -> None:
    loads = [Load("full", 6, 0), Load("empty", 0, 6)]
    assert gives_one(loads, 0, "full")
    assert not gives_one(loads, 0, "empty")
    assert not gives_one(loads, 1, "full")


def test_an_id_names_its_shard() -> None:
    for shard in (0, 1, 255):
        assert shard_of_id(ids_before(shard) + 1) == shard
        assert shard_of_id(ids_before(shard) + 10**12) == shard

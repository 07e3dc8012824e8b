"""Every decision about a job, as tables: what a verb does, what becomes of an attempt, what people are shown."""

import itertools
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from silkline.model.job import (
    ENDED,
    LIVE,
    TRANSITIONS,
    AttemptEnd,
    Backoff,
    Change,
    Decision,
    End,
    Job,
    Refusal,
    Status,
    Verb,
    Wish,
    answer,
    decide,
    shown_status,
)
from silkline.store.statements import load

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BACKOFF = Backoff(base=10.0, cap=60.0)
S, W, V = Status, Wish, Verb
STILL = {S.PAUSED: W.PAUSE, S.STOPPED: W.STOP, S.CANCELLED: W.CANCEL}  # the wish that a job at rest has


def job(**fields: Any) -> Job:
    values: dict[str, Any] = dict.fromkeys(Job.__slots__)
    values |= {"status": S.RUNNING, "desired": W.RUN, "retry_count": 0, "crash_count": 0, "max_retries": 3}
    return Job(**{**values, **fields})


def ended(end: End, **fields: Any) -> Decision:
    wait = fields.pop("wait", 0.0)
    return decide(job(**fields), AttemptEnd(end, wait=wait), backoff=BACKOFF, now=NOW, jitter=0.0)


# The whole table: for each state (with its wish) what each verb leads to; None is a refusal.
ANSWERS: dict[tuple[Status, Wish], dict[Verb, tuple[Status, Wish] | None]] = {
    (S.QUEUED, W.RUN): {
        V.PAUSE: (S.PAUSED, W.PAUSE),
        V.RESUME: (S.QUEUED, W.RUN),
        V.STOP: (S.STOPPED, W.STOP),
        V.CANCEL: (S.CANCELLED, W.CANCEL),
        V.RETRY: None,
    },
    (S.RUNNING, W.RUN): {
        V.PAUSE: (S.RUNNING, W.PAUSE),
        V.RESUME: (S.RUNNING, W.RUN),
        V.STOP: (S.RUNNING, W.STOP),
        V.CANCEL: (S.RUNNING, W.CANCEL),
        V.RETRY: None,
    },
    (S.RUNNING, W.PAUSE): {
        V.PAUSE: (S.RUNNING, W.PAUSE),
        V.RESUME: (S.RUNNING, W.RUN),
        V.STOP: (S.RUNNING, W.STOP),
        V.CANCEL: (S.RUNNING, W.CANCEL),
        V.RETRY: None,
    },
    (S.RUNNING, W.STOP): {
        V.PAUSE: None,
        V.RESUME: None,
        V.STOP: (S.RUNNING, W.STOP),
        V.CANCEL: (S.RUNNING, W.CANCEL),
        V.RETRY: None,
    },
    (S.RUNNING, W.CANCEL): {
        V.PAUSE: None,
        V.RESUME: None,
        V.STOP: None,
        V.CANCEL: (S.RUNNING, W.CANCEL),
        V.RETRY: None,
    },
    (S.PAUSED, W.PAUSE): {
        V.PAUSE: (S.PAUSED, W.PAUSE),
        V.RESUME: (S.QUEUED, W.RUN),
        V.STOP: (S.STOPPED, W.STOP),
        V.CANCEL: (S.CANCELLED, W.CANCEL),
        V.RETRY: None,
    },
    (S.STOPPED, W.STOP): {
        V.PAUSE: None,
        V.RESUME: None,
        V.STOP: (S.STOPPED, W.STOP),
        V.CANCEL: None,
        V.RETRY: (S.QUEUED, W.RUN),
    },
    (S.CANCELLED, W.CANCEL): {
        V.PAUSE: None,
        V.RESUME: None,
        V.STOP: None,
        V.CANCEL: (S.CANCELLED, W.CANCEL),
        V.RETRY: None,
    },
    (S.COMPLETED, W.RUN): dict.fromkeys(V),
    (S.FAILED, W.RUN): {**dict.fromkeys(V), V.RETRY: (S.QUEUED, W.RUN)},
}


@pytest.mark.parametrize("state", ANSWERS)
def test_a_verb_has_one_answer_in_each_state(state: tuple[Status, Wish]) -> None:
    assert set(ANSWERS[state]) == set(V)
    for verb, expected in ANSWERS[state].items():
        given = answer(verb, *state)
        if expected is None:
            assert isinstance(given, Refusal)
            assert shown_status(*state) in given.why
        else:
            fresh = verb is V.RETRY or (verb is V.RESUME and state[0] is S.PAUSED)
            assert given == Change(*expected, fresh_retries=fresh, due_now=verb is V.RETRY)


def test_asking_twice_is_asking_once() -> None:
    for state, verb in itertools.product(ANSWERS, V):
        first = answer(verb, *state)
        if isinstance(first, Change) and verb is not V.RETRY:
            again = answer(verb, first.status, first.desired)
            assert isinstance(again, Change)
            assert (again.status, again.desired) == (first.status, first.desired)


def test_a_refused_resume_says_what_to_use_instead() -> None:
    for status in (S.FAILED, S.STOPPED):
        refusal = answer(V.RESUME, status, STILL.get(status, W.RUN))
        assert isinstance(refusal, Refusal)
        assert refusal.why.endswith("use retry")


def produced() -> set[tuple[Status, Status]]:
    """Every change of status that the pure functions can lead to, by trying everything."""
    found = {(S.QUEUED, S.RUNNING)}  # the claim, which no function decides
    for state, verb in itertools.product(ANSWERS, V):
        change = answer(verb, *state)
        if isinstance(change, Change) and change.status is not state[0]:
            found.add((state[0], change.status))
    for end, wish, used in itertools.product(End, Wish, range(3)):
        decision = ended(end, desired=wish, retry_count=used, crash_count=used, max_retries=1)
        found.add((S.RUNNING, decision.status))
    return found


def test_the_transitions_are_exactly_what_the_decisions_can_lead_to() -> None:
    assert produced() == TRANSITIONS


def test_no_state_is_a_dead_end_but_completed_and_cancelled() -> None:
    assert {status for status in S if not [1 for source, _ in TRANSITIONS if source is status]} == {
        S.COMPLETED,
        S.CANCELLED,
    }
    assert set(S) == LIVE | ENDED
    assert not LIVE & ENDED


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_change_of_status_in_sql_is_a_compare_and_set(dialect: str) -> None:
    changes = {name: sql for name, sql in load("jobs", dialect).items() if re.search(r"\bSET\s+status = ", sql)}
    assert set(changes) == {"claim", "claim_one", "finish", "rescue", "change"}
    guards = {
        "claim": ["status = 'queued'"],
        "claim_one": ["status = 'queued'"],
        "finish": ["status = 'running'", "run_lease = ", "worker_id = ", "desired = "],
        "rescue": ["status = 'running'", "run_lease = ", "heartbeat_seq = ", "desired = "],
        "change": ["status = ", "desired = ", "run_lease = "],
    }
    for name, sql in changes.items():
        # PostgreSQL asks the status of a claimed job where it locks the row.
        where = (
            sql[sql.rindex("\nWHERE ") :] if (name, dialect) != ("claim", "postgres") else sql[sql.index("locked AS") :]
        )
        for guard in guards[name]:
            assert guard in where
    for name in ("claim", "claim_one", "rescue"):
        assert "run_lease = run_lease + 1" in changes[name]
    for name in ("finish", "change"):
        assert "run_lease = run_lease + 1" not in changes[name]


# For each end: without a wish, and with the wish to pause, stop or cancel.
ENDS: dict[End, tuple[Status, Status, Status, Status]] = {
    End.COMPLETED: (S.COMPLETED, S.COMPLETED, S.COMPLETED, S.COMPLETED),
    End.PAUSED: (S.QUEUED, S.PAUSED, S.STOPPED, S.CANCELLED),
    End.STOPPED: (S.QUEUED, S.PAUSED, S.STOPPED, S.CANCELLED),
    End.CANCELLED: (S.QUEUED, S.PAUSED, S.STOPPED, S.CANCELLED),
    End.RELEASED: (S.QUEUED, S.PAUSED, S.STOPPED, S.CANCELLED),
    End.TEMPORARY: (S.QUEUED, S.PAUSED, S.STOPPED, S.CANCELLED),
    End.PERMANENT: (S.FAILED, S.FAILED, S.FAILED, S.CANCELLED),
    End.CRASHED: (S.QUEUED, S.PAUSED, S.STOPPED, S.CANCELLED),
}


@pytest.mark.parametrize("end", End)
def test_what_becomes_of_an_attempt(end: End) -> None:
    for wish, expected in zip((W.RUN, W.PAUSE, W.STOP, W.CANCEL), ENDS[end], strict=True):
        decision = ended(end, desired=wish)
        assert decision.status is expected
        assert decision.desired is STILL.get(expected, W.RUN)
        assert decision.retry_count == (1 if end is End.TEMPORARY and wish is W.RUN else 0)
        assert decision.crash_count == (1 if end is End.CRASHED else 0)
        assert (decision.exit_reason, decision.error_message) == (end.value, None)


def test_a_reason_and_a_message_are_kept() -> None:
    decision = decide(job(), AttemptEnd(End.CRASHED, "memory", "too much"), backoff=BACKOFF, now=NOW, jitter=0)
    assert (decision.exit_reason, decision.error_message) == ("memory", "too much")


@pytest.mark.parametrize(("end", "counter"), [(End.TEMPORARY, "retry_count"), (End.CRASHED, "crash_count")])
def test_as_many_tries_as_allowed_and_then_failed(end: End, counter: str) -> None:
    statuses = [ended(end, max_retries=2, **{counter: used}).status for used in range(4)]
    assert statuses == [S.QUEUED, S.QUEUED, S.FAILED, S.FAILED]
    assert ended(end, max_retries=0).status is S.FAILED


def test_retries_and_crashes_are_counted_apart() -> None:
    assert ended(End.TEMPORARY, crash_count=9, max_retries=1).status is S.QUEUED
    assert ended(End.CRASHED, retry_count=9, max_retries=1).status is S.QUEUED


def test_a_failure_waits_longer_each_time_and_a_release_as_long_as_it_asks() -> None:
    waits = [(ended(End.CRASHED, crash_count=used, max_retries=9).run_at - NOW).total_seconds() for used in range(5)]
    assert waits == [5, 10, 20, 30, 30]
    assert ended(End.RELEASED).run_at == NOW
    assert ended(End.RELEASED, wait=45).run_at == NOW + timedelta(seconds=45)


def test_backoff_doubles_is_capped_and_half_of_it_is_random() -> None:
    assert [BACKOFF.delay(failures, 1.0).total_seconds() for failures in (0, 1, 2, 3, 4, 10)] == [
        10,
        10,
        20,
        40,
        60,
        60,
    ]
    assert BACKOFF.delay(1, 0.0).total_seconds() == 5
    assert BACKOFF.delay(10**9, 0.999).total_seconds() <= 60
    assert Backoff(base=0.0, cap=0.0).delay(5, 0.5) == timedelta()


@pytest.mark.parametrize("status", S)
def test_what_people_are_shown(status: Status) -> None:
    assert shown_status(status, W.RUN) == status.value
    later, earlier = NOW + timedelta(seconds=1), NOW - timedelta(seconds=1)
    waiting = "pending" if status is S.QUEUED else status.value
    assert shown_status(status, W.RUN, later, NOW) == waiting
    assert shown_status(status, W.RUN, earlier, NOW) == shown_status(status, W.RUN, NOW, NOW) == status.value
    for wish, word in ((W.PAUSE, "pausing"), (W.STOP, "stopping"), (W.CANCEL, "cancelling")):
        assert shown_status(status, wish, later, NOW) == (word if status is S.RUNNING else waiting)


@pytest.mark.parametrize("wish", Wish)
def test_a_crash_that_an_input_is_blamed_for_counts_for_nothing_and_waits_for_nothing(wish: Wish) -> None:
    crashed = AttemptEnd(End.CRASHED, "read_timeout", "killed", excused=True)
    decision = decide(job(desired=wish, max_retries=0), crashed, backoff=BACKOFF, now=NOW, jitter=0.0)
    wished = {W.RUN: S.QUEUED, W.PAUSE: S.PAUSED, W.STOP: S.STOPPED, W.CANCEL: S.CANCELLED}
    assert (decision.status, decision.crash_count, decision.run_at) == (wished[wish], 0, NOW)

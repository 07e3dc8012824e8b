"""What people may ask of a job in every state, against the pure answer; and the small print of retry and resume."""

import itertools

import pytest

from silkline.errors import NotFound, Refused, Unavailable
from silkline.model.database import Database
from silkline.model.job import End, Job, Refusal, Status, Verb, Wish, answer
from silkline.store import jobs
from tests.store.given import NOWHERE, finished, in_status, queued, running, tomorrow

WISHED = [
    (status, wish)
    for status, wish in itertools.product(Status, Wish)
    if status is Status.RUNNING or wish is Wish.RUN  # only a running job can have a wish that is not yet a fact
]


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize(("status", "wish"), WISHED)
def test_a_verb_does_what_the_model_answers(database: Database, status: Status, wish: Wish, verb: Verb) -> None:
    job = in_status(database, status)
    if wish is not Wish.RUN:
        job = jobs.wish(database, job.id, Verb(wish.value))
    expected = answer(verb, job.status, job.desired)
    if isinstance(expected, Refusal):
        with pytest.raises(Refused) as refused:
            jobs.wish(database, job.id, verb)
        assert expected.why in str(refused.value)
        assert jobs.get(database, job.id) == job
        return
    changed = jobs.wish(database, job.id, verb)
    assert (changed.status, changed.desired) == (expected.status, expected.desired)
    assert changed == jobs.get(database, job.id)
    assert changed.run_lease == job.run_lease
    assert (changed.finished_at is not None) == (changed.status in ("stopped", "cancelled", "completed", "failed"))
    if (changed.status, changed.desired) == (job.status, job.desired):
        assert changed == job


@pytest.mark.parametrize("verb", Verb)
def test_nobody_there(database: Database, verb: Verb) -> None:
    for id in (NOWHERE, "last", "", "nonsense", "\x00", "\udc80", NOWHERE + "0"):
        with pytest.raises(NotFound):
            jobs.wish(database, id, verb)


def test_retry_gives_fresh_retries_and_runs_now(database: Database) -> None:
    job = running(database, max_retries=0)
    finished(database, job, End.CRASHED, message="boom")
    failed = jobs.get(database, job.id)
    assert (failed.status, failed.crash_count) == (Status.FAILED, 1)
    again = jobs.wish(database, job.id, Verb.RETRY)
    assert (again.status, again.retry_count, again.crash_count, again.run_lease) == (Status.QUEUED, 0, 0, 1)
    assert [each.id for each in jobs.claim(database, "w1", "h", ["page"], 1)] == [job.id]


def test_resume_may_run_at_once(database: Database) -> None:
    job = in_status(database, Status.PAUSED)
    jobs.wish(database, job.id, Verb.RESUME)
    assert [each.id for each in jobs.claim(database, "w1", "h", ["page"], 1)] == [job.id]


def test_resume_keeps_the_time_of_what_is_scheduled(database: Database) -> None:
    job = queued(database, run_at=tomorrow(database))
    jobs.wish(database, job.id, Verb.PAUSE)
    assert jobs.wish(database, job.id, Verb.RESUME).run_at == job.run_at


def test_pausing_and_cancelling_what_is_scheduled(database: Database) -> None:
    job = queued(database, run_at=tomorrow(database))
    assert jobs.wish(database, job.id, Verb.PAUSE).run_at == job.run_at
    cancelled = jobs.wish(database, job.id, Verb.CANCEL)
    assert (cancelled.status, cancelled.finished_at) == (Status.CANCELLED, cancelled.updated_at)


def test_retry_is_refused_while_another_live_job_has_the_key(database: Database) -> None:
    first = running(database, dedupe_key="one")
    finished(database, first, End.PERMANENT)
    before = jobs.get(database, first.id)
    second = queued(database, dedupe_key="one")
    with pytest.raises(Refused, match="another job with the dedupe key 'one' has not ended"):
        jobs.wish(database, first.id, Verb.RETRY)
    assert jobs.get(database, first.id) == before
    jobs.wish(database, second.id, Verb.CANCEL)
    assert jobs.wish(database, first.id, Verb.RETRY).status is Status.QUEUED


def test_an_outage_is_not_mistaken_for_a_dedupe_key(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    job = queued(database, dedupe_key="mine")
    ask = database.rows

    def out_of_reach(name: str, **parameters: object) -> object:
        if name == "jobs.change":
            raise Unavailable("not now")
        return ask(name, **parameters)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "rows", out_of_reach)
    with pytest.raises(Unavailable):
        jobs.wish(database, job.id, Verb.PAUSE)


def test_a_wish_races_with_a_claim_and_is_asked_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    job = queued(database)
    ask = database.rows
    claims: list[Job] = []

    def claimed_in_between(name: str, **parameters: object) -> object:
        if name == "jobs.change" and not claims:
            claims.extend(jobs.claim(database, "w1", "h", ["page"], 1))
        return ask(name, **parameters)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "rows", claimed_in_between)
    changed = jobs.wish(database, job.id, Verb.PAUSE)
    assert len(claims) == 1
    assert (changed.status, changed.desired) == (Status.RUNNING, Wish.PAUSE)

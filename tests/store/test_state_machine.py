"""Jobs and workers driven through random lives, step by step against a simple model of what must be true.

Every step goes through the verbs of store/jobs.py; after each the whole table is read and compared with what it was:
only the transitions of TRANSITIONS happened, leases never fell, nobody owns a job twice, no job is lost.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from silkline.errors import LeaseLost, Refused
from silkline.model.database import Database
from silkline.model.job import (
    LIVE,
    TRANSITIONS,
    AttemptEnd,
    Backoff,
    End,
    Job,
    NewJob,
    Refusal,
    Status,
    Verb,
    Wish,
    answer,
    decide,
)
from silkline.model.ledger import Checkpoint
from silkline.store import job_removal, jobs, urls, workers
from silkline.store.opening import open_database
from tests.store.conftest import EMPTY
from tests.store.given import url

NOW = Backoff(base=0.0, cap=0.0)  # retries are due at once
WORKERS = ("w1", "w2", "w3")
KEYS = st.sampled_from([None, None, "a", "b"])
MOST_JOBS = 6


class Lives(RuleBasedStateMachine):
    database: Database
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.random = random.Random(0)
        self.before: dict[str, Job] = {}
        self.held: dict[tuple[str, int], Job] = {}  # what each attempt believes that it owns
        self.known: set[str] = set()
        self.lost: list[Job] = []  # attempts that were told, or will be, that they own nothing any more

    @initialize()
    def begin(self) -> None:
        for job in jobs.page(self.database, wanted=1000):
            while jobs.get(self.database, job.id).status in LIVE:
                self._end(job.id)
            job_removal.delete(self.database, job.id)
        for worker in WORKERS:
            workers.retire(self.database, worker)
            workers.register(self.database, id=worker, host="h", pid=1, boot_id="b", slots=9, version="1")
        # Some jobs to begin with: Hypothesis leaves out rules at random, and without `enqueue` nothing would happen.
        new = [NewJob("page", {}, max_retries=number % 3, priority=number % 2) for number in range(3)]
        self.known = set(jobs.enqueue_many(self.database, new))

    def _end(self, id: str) -> None:
        job = jobs.wish(self.database, id, Verb.CANCEL)
        if job.status is Status.RUNNING:
            jobs.rescue(self.database, job, self._decision(job, End.CRASHED))

    def _decision(self, job: Job, end: End) -> Any:
        return decide(job, AttemptEnd(end), backoff=NOW, now=self.database.now(), jitter=self.random.random())

    def _pick(self, number: int, things: list[Any]) -> Any:
        return things[number % len(things)] if things else None

    @rule(
        key=KEYS, priority=st.integers(0, 2), tenant=st.sampled_from("xy"), paused=st.booleans(), most=st.integers(0, 2)
    )
    def enqueue(self, key: str | None, priority: int, tenant: str, paused: bool, most: int) -> None:
        if len(self.known) >= MOST_JOBS:
            return
        new = NewJob("page", {}, dedupe_key=key, priority=priority, tenant=tenant, paused=paused, max_retries=most)
        holder = [
            job
            for job in self.before.values()
            if key and (job.tenant, job.dedupe_key) == (tenant, key) and job.status in LIVE
        ]
        job, fresh = jobs.enqueue(self.database, new)
        assert fresh == (not holder)
        assert fresh or job.id == holder[0].id
        self.known.add(job.id)

    @rule(worker=st.sampled_from(WORKERS), wanted=st.integers(1, 3))
    def claim(self, worker: str, wanted: int) -> None:
        waiting = [job for job in self.before.values() if job.status is Status.QUEUED]
        taken = jobs.claim(self.database, worker, "h", ["page"], wanted)
        assert len(taken) == min(wanted, len(waiting))
        if taken:
            left = [job.priority for job in waiting if job.id not in {each.id for each in taken}]
            assert min(job.priority for job in taken) >= max(left, default=0)
        for job in taken:
            self._own(job)

    @rule(worker=st.sampled_from(WORKERS), number=st.integers(0, 99))
    def claim_one(self, worker: str, number: int) -> None:
        id = self._pick(number, sorted(self.known))
        if id is None:
            return
        try:
            self._own(jobs.claim_one(self.database, worker, "h", id))
        except Refused:
            assert self.before[id].status is not Status.QUEUED
        else:
            assert self.before[id].status is Status.QUEUED

    def _own(self, job: Job) -> None:
        before = self.before[job.id]
        assert (job.status, job.run_lease, job.attempt) == (Status.RUNNING, before.run_lease + 1, before.attempt + 1)
        self.held[job.id, job.run_lease] = job

    @rule(number=st.integers(0, 99), end=st.sampled_from(End))
    def finish(self, number: int, end: End) -> None:
        job = self._pick(number, list(self.held.values()))
        if job is None:
            return
        current = self.before[job.id]
        decision = jobs.finish(self.database, job, lambda now: self._decision(now, end))
        expected = self._decision(current, end)
        assert (decision.status, decision.desired) == (expected.status, expected.desired)
        assert (decision.retry_count, decision.crash_count) == (expected.retry_count, expected.crash_count)
        self.lost.append(self.held.pop((job.id, job.run_lease)))

    @rule(number=st.integers(0, 99), verb=st.sampled_from(Verb))
    def wish(self, number: int, verb: Verb) -> None:
        running = [job.id for job in self.before.values() if job.status is Status.RUNNING]
        id = self._pick(number, (running if number % 2 else []) or sorted(self.known))
        if id is None:
            return
        before = self.before[id]
        expected = answer(verb, before.status, before.desired)
        if isinstance(expected, Refusal):
            with pytest.raises(Refused):
                jobs.wish(self.database, id, verb)
            return
        key = (before.tenant, before.dedupe_key)
        others = [job for job in self.before.values() if job.id != id]
        twins = [job for job in others if before.dedupe_key and (job.tenant, job.dedupe_key) == key]
        if before.status not in LIVE and expected.status in LIVE and any(job.status in LIVE for job in twins):
            with pytest.raises(Refused, match="dedupe key"):
                jobs.wish(self.database, id, verb)
            return
        after = jobs.wish(self.database, id, verb)
        assert (after.status, after.desired) == (expected.status, expected.desired)

    @rule(worker=st.sampled_from(WORKERS))
    def heartbeat(self, worker: str) -> None:
        held = jobs.heartbeat(self.database, worker, slots=9, state="running")
        assert held is not None
        owned = {(job.id, job.run_lease) for job in self.before.values() if job.worker_id == worker}
        assert {(each.id, each.run_lease) for each in held} == owned
        for each in held:
            assert each.desired is self.before[each.id].desired

    @rule(number=st.integers(0, 99), forget=st.booleans())
    def crash_and_rescue(self, number: int, forget: bool) -> None:
        """The owner dies without a word (or is thought dead, and will try to write)."""
        job = self._pick(number, jobs.running(self.database))
        if job is None:
            return
        assert jobs.rescue(self.database, job, self._decision(job, End.CRASHED))
        assert jobs.get(self.database, job.id).run_lease == job.run_lease + 1
        owner = self.held.pop((job.id, job.run_lease))
        if not forget:
            self.lost.append(owner)

    @rule(number=st.integers(0, 99), worker=st.sampled_from(WORKERS))
    def rescue_of_the_living_fails(self, number: int, worker: str) -> None:
        job = self._pick(number, [job for job in self.before.values() if job.worker_id == worker])
        if job is None:
            return
        jobs.renew(self.database, job.id, job.run_lease, worker)
        assert not jobs.rescue(self.database, job, self._decision(job, End.CRASHED))

    @rule(number=st.integers(0, 99))
    def an_old_owner_cannot_write(self, number: int) -> None:
        """Most of all one whose worker owns the job again: only the lease tells them apart."""
        again = [job for job in self.lost if self.before[job.id].worker_id == job.worker_id]
        job = self._pick(number, again or self.lost)
        if job is None:
            return
        table = jobs.page(self.database, wanted=1000)
        assert job.worker_id
        with pytest.raises(LeaseLost):
            jobs.finish(self.database, job, lambda now: self._decision(now, End.COMPLETED))
        with pytest.raises(LeaseLost):
            jobs.renew(self.database, job.id, job.run_lease, job.worker_id)
        with pytest.raises(LeaseLost):
            jobs.started(self.database, job, 1, None)
        with pytest.raises(LeaseLost):
            urls.record(self.database, job, Checkpoint([url(1)]))
        assert not jobs.rescue(self.database, job, self._decision(job, End.CRASHED))
        assert jobs.page(self.database, wanted=1000) == table
        assert urls.page(self.database, job.id) == []

    @invariant()
    def the_table_is_sane(self) -> None:
        after = {job.id: job for job in jobs.page(self.database, wanted=1000)}
        assert set(after) == self.known, "a job was lost, or came from nowhere"
        for job in after.values():
            self._is_sane(job, self.before.get(job.id))
        owners = {(job.id, job.run_lease): job.worker_id for job in after.values() if job.status is Status.RUNNING}
        assert owners == {lease: job.worker_id for lease, job in self.held.items()}
        self.before = after
        type(self).steps += 1

    def _is_sane(self, job: Job, before: Job | None) -> None:
        assert (job.status is Status.RUNNING) == (job.worker_id is not None)
        assert (job.status in LIVE) == (job.finished_at is None)
        if job.status in (Status.PAUSED, Status.STOPPED, Status.CANCELLED):
            assert job.desired is {"paused": Wish.PAUSE, "stopped": Wish.STOP, "cancelled": Wish.CANCEL}[job.status]
        elif job.status is not Status.RUNNING:
            assert job.desired is Wish.RUN
        if before is None:
            assert job.status in (Status.QUEUED, Status.PAUSED)
            assert job.run_lease == job.attempt == 0
            return
        if job.status is not before.status:
            assert (before.status, job.status) in TRANSITIONS
        assert job.run_lease >= before.run_lease
        assert job.attempt >= before.attempt
        assert job.heartbeat_seq >= before.heartbeat_seq
        if job.status is Status.RUNNING and before.status is not Status.RUNNING:
            assert job.run_lease == before.run_lease + 1
        if job.worker_id != before.worker_id and before.worker_id and job.worker_id:
            pytest.fail("a job went from one owner to another without being free in between")


@pytest.fixture
def lives_database(migrated_url: str, shared_postgres_url: str) -> Iterator[Database]:
    """Emptied once; each example ends the jobs of the one before by the verbs themselves."""
    opened = open_database(migrated_url)
    yield opened
    opened.close()
    if migrated_url == shared_postgres_url:
        with psycopg.connect(shared_postgres_url, autocommit=True) as connection:
            connection.execute(EMPTY)


def test_random_lives_keep_every_promise(lives_database: Database, tmp_path: Path) -> None:
    class Bound(Lives):
        database = lives_database

    run_state_machine_as_test(
        Bound,
        settings=settings(
            max_examples=60,
            stateful_step_count=60,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Bound.steps > 1_000

"""What becomes of jobs when nothing dies: they run, obey, are limited, and end with the exact reason."""

import os
import signal

import pytest

from silkline.model.job import Status, Verb
from silkline.store import jobs, logs, workers
from tests.support.escapees import find
from tests.support.supervisors import ENDLESS, Yard, alive, eventually


def test_a_job_runs_and_completes(yard: Yard) -> None:
    (id,) = yard.add("work", steps=3)
    yard.start()
    job = yard.wait_for(id, Status.COMPLETED)
    assert (job.attempt, job.exit_reason, job.error_message, job.worker_id, job.pid) == (
        1,
        "completed",
        None,
        None,
        None,
    )
    assert yard.results_of(id) == [1, 2, 3]
    assert yard.adds_up(id)
    eventually("its log is stored", lambda: "the job is now completed" in yard.lines(id))
    assert "diagnostic job: work" in (yard.supervisors[0].data / "logs" / f"{id}.log").read_text()


@pytest.mark.parametrize(
    ("payload", "status", "reason", "message"),
    [
        ({"do": "exit", "code": 65, "text": "no such page"}, "failed", "exit 65: no such page", "no such page"),
        ({"do": "exit", "code": 75, "text": "too busy"}, "failed", "exit 75: too busy", "too busy"),
        ({"do": "exit", "code": 3, "text": "what a pity"}, "failed", "crashed (exit 3)", "what a pity"),
        ({"do": "segfault"}, "failed", "crashed (signal 11)", "killed by signal 11"),
    ],
    ids=["permanent", "temporary", "exit", "signal"],
)
def test_the_reason_a_job_ended_is_exact(yard: Yard, payload: dict, status: str, reason: str, message: str) -> None:
    yard.start()
    (id,) = yard.add(**payload, max_retries=1)
    job = yard.wait_for(id, Status.FAILED)
    assert (job.status, job.exit_reason) == (status, reason)
    assert message in (job.error_message or "")
    assert job.attempt == (1 if payload.get("code") == 65 else 2), "only a permanent failure is not tried again"


def test_a_poison_job_does_not_block_the_others(yard: Yard) -> None:
    poison = yard.add("segfault", many=2, max_retries=2)
    good = yard.add("nothing", many=5)
    yard.start(slots=1)
    ended = yard.wait_for_end(poison + good)
    assert [job.status for job in ended] == [Status.FAILED] * 2 + [Status.COMPLETED] * 5
    assert [job.attempt for job in ended[:2]] == [3, 3]


def test_one_tenant_does_not_starve_another(yard: Yard) -> None:
    many = yard.add("nothing", many=30, tenant="many")
    (one,) = yard.add("nothing", tenant="one")
    yard.start(slots=1)
    yard.wait_for_end([*many, one])
    started = sorted((yard.job(id).started_at, id) for id in [*many, one])
    assert [id for _, id in started].index(one) <= 2


@pytest.mark.parametrize(("verb", "status"), [("pause", "paused"), ("stop", "stopped"), ("cancel", "cancelled")])
def test_a_running_job_obeys(yard: Yard, verb: str, status: str) -> None:
    (id,) = yard.add("work", **ENDLESS)
    yard.start()
    yard.wait_for_results(id)
    runner = yard.runner_of(id)
    jobs.wish(yard.database, id, Verb(verb))
    job = yard.wait_for(id, Status(status))
    assert not alive(runner)
    kept = yard.results_of(id)
    assert kept == list(range(1, len(kept) + 1))
    assert yard.adds_up(id)
    assert (job.retry_count, job.crash_count) == (0, 0)


def test_a_paused_job_goes_on_where_it_was(yard: Yard) -> None:
    (id,) = yard.add("work", **ENDLESS)
    yard.start()
    yard.wait_for_results(id)
    (steps,) = yard.bring_to_an_end(id)
    assert yard.results_of(id) == list(range(1, steps + 1))


def test_a_job_that_does_not_obey_is_killed_and_its_wish_is_kept(yard: Yard) -> None:
    (id,) = yard.add("disobey", seconds=600)
    yard.start(kill_after=0.5)
    runner = yard.runner_of(id)
    jobs.wish(yard.database, id, Verb.STOP)
    job = yard.wait_for(id, Status.STOPPED)
    assert "it did not end within" in (job.error_message or "")
    assert not alive(runner)


@pytest.mark.parametrize(
    ("payload", "settings", "reason"),
    [
        ({"do": "sleep", "seconds": 600}, {"page_deadline": 0.5}, "timeout"),
        ({"do": "hang"}, {"stall_after": 0.5}, "stalled"),
    ],
    ids=["timeout", "stalled"],
)
def test_a_job_over_its_limit_is_killed(yard: Yard, payload: dict, settings: dict, reason: str) -> None:
    (id,) = yard.add(**payload, max_retries=0)
    yard.start(**settings)
    job = yard.wait_for(id, Status.FAILED)
    assert job.exit_reason == reason
    assert "killed" in (job.error_message or "")


def test_a_flood_of_output_harms_nothing(yard: Yard) -> None:
    (id,) = yard.add("flood", size=100 << 20)
    supervisor = yard.start(log_bytes=1 << 20, log_lines=200)
    yard.wait_for(id, Status.COMPLETED)
    folder = supervisor.data / "logs"
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 2 << 20
    eventually("its lines are stored", lambda: "logs too much" in yard.lines(id))
    assert len(logs.page(yard.database, id, wanted=10_000)) <= 200


def test_leftovers_of_a_job_die_with_it(yard: Yard) -> None:
    supervisor = yard.ready(yard.start())
    (id,) = yard.add("escape", seconds=0)
    yard.wait_for(id, Status.COMPLETED)
    eventually("only the fork server is left", lambda: len(yard.processes_of(supervisor)) <= 1)
    eventually("no process without a tag is left either", lambda: not find(id))


def test_the_fork_server_is_started_again(yard: Yard) -> None:
    supervisor = yard.ready(yard.start())
    first = eventually("it has its fork server", lambda: yard.processes_of(supervisor))
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    (id,) = yard.add("nothing")
    yard.wait_for(id, Status.COMPLETED)


def test_a_fresh_interpreter_serves_too(yard: Yard) -> None:
    (id,) = yard.add("work", steps=2)
    yard.start(fork_server=False)
    job = yard.wait_for(id, Status.COMPLETED)
    assert job.attempt == 1
    assert yard.results_of(id) == [1, 2]


def test_a_hangup_reads_the_slots_again(yard: Yard) -> None:
    supervisor = yard.ready(yard.start(slots=0))
    (id,) = yard.add("nothing")
    (supervisor.data / "silkline.toml").write_text("slots = 1\n")
    assert yard.job(id).status is Status.QUEUED
    supervisor.signal(signal.SIGHUP)
    eventually("it says so", lambda: "settings read again" in supervisor.log)


def test_who_is_at_work_can_be_seen(yard: Yard) -> None:
    (id,) = yard.add("sleep", seconds=600)
    supervisor = yard.start(slots=3)
    yard.runner_of(id)

    def seen() -> bool:
        (worker,) = workers.everyone(yard.database)
        return (worker.pid, worker.slots, worker.jobs_held) == (supervisor.process.pid, 3, 1)

    eventually("the worker shows its job", seen)
    jobs.wish(yard.database, id, Verb.CANCEL)
    yard.wait_for(id, Status.CANCELLED)
    assert supervisor.terminate() == 0
    assert workers.everyone(yard.database) == []


def test_retention_deletes_what_is_old(yard: Yard) -> None:
    ids = yard.add("work", many=5, steps=1)
    yard.start(keep_jobs_count=2)
    eventually("three of five are deleted", lambda: sum(jobs.counts(yard.database).values()) == 2)
    left = [id for id in ids if id in {job.id for job in jobs.page(yard.database)}]
    assert [yard.results_of(id) for id in left] == [[1], [1]]

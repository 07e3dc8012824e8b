"""`kill -9` and SIGSTOP anywhere: no job is lost, none is stuck, nothing is stored twice, nobody is left over."""

import contextlib
import os
import random
import signal
import sqlite3
from pathlib import Path

from silkline.model.job import Status
from silkline.store import jobs
from tests.chaos.conftest import Stopwatch
from tests.support.supervisors import ENDLESS, STALE, STALE_LATER, SupervisorProcess, Yard, alive, eventually


def all_done_once(yard: Yard, ids: list[str], steps: int) -> None:
    for id in ids:
        job = yard.job(id)
        assert job.status is Status.COMPLETED, job
        assert yard.results_of(id) == list(range(1, steps + 1))
        assert yard.adds_up(id)


def test_runners_are_killed(yard: Yard, long_chaos: bool, stopwatch: Stopwatch, figure: list[str]) -> None:
    """SIGKILL the runner again and again: the job is queued again at once and loses nothing."""
    kills = 100 if long_chaos else 8
    yard.start(slots=4)
    ids = yard.add("work", many=4, **ENDLESS)
    dice = random.Random(7)
    done = 0
    while done < kills:
        running = [job for job in jobs.running(yard.database) if job.pid]
        if not running:
            continue
        job = dice.choice(running)
        with contextlib.suppress(ProcessLookupError), stopwatch:
            os.kill(job.pid or 0, signal.SIGKILL)
            eventually(
                "the dead attempt is noticed",
                lambda job=job: yard.job(job.id).run_lease > job.run_lease or not is_running(yard, job.id),
            )
        done += 1
    end_and_count(yard, ids)
    crashes = sum(yard.job(id).crash_count for id in ids)
    figure.append(f"{done} kills, {crashes} crashes counted, 0 lost, 0 stuck; noticed: {stopwatch}")


def end_and_count(yard: Yard, ids: list[str]) -> None:
    """Endless work comes to its end, and every step was done once."""
    for id, steps in zip(ids, yard.bring_to_an_end(*ids), strict=True):
        all_done_once(yard, [id], steps)


def is_running(yard: Yard, id: str) -> bool:
    return yard.job(id).status is Status.RUNNING


def test_the_supervisor_is_killed(yard: Yard, long_chaos: bool, stopwatch: Stopwatch, figure: list[str]) -> None:
    """SIGKILL the supervisor: its processes die, and its successor on the machine takes the jobs back at once."""
    kills = 30 if long_chaos else 4
    ids = yard.add("work", many=2, **ENDLESS)
    for number in range(kills):
        supervisor = yard.ready(yard.start())
        before = {id: len(yard.results_of(id)) for id in ids}
        with stopwatch:
            eventually("a job goes on", lambda b=before: any(len(yard.results_of(id)) > b[id] for id in ids))
        below = yard.processes_of(supervisor)
        assert below, "there must be something to leave behind"
        supervisor.kill()
        eventually(f"nobody is left over after kill {number + 1}", lambda b=below: not any(alive(pid) for pid in b))
    yard.start()
    end_and_count(yard, ids)
    figure.append(f"{kills} kills, 0 lost, 0 processes left; start to progress: {stopwatch}")


def test_another_machine_takes_over(yard: Yard, stopwatch: Stopwatch, figure: list[str]) -> None:
    """A supervisor that cannot see the dead one's lock waits for the stale limit, and then takes its jobs."""
    (id,) = yard.add("work", **ENDLESS)
    first = yard.start("one", **STALE)
    yard.wait_for_results(id)
    second = yard.ready(yard.start("two", slots=1, **STALE))
    lease = yard.job(id).run_lease
    first.kill()
    rescued = Stopwatch()
    with stopwatch:
        with rescued:
            eventually("the job is rescued", lambda: yard.job(id).run_lease > lease)
        yard.runner_of(id, after=lease)
    assert "was silent for more than" in second.log
    assert yard.job(id).crash_count == 1
    end_and_count(yard, [id])
    figure.append(f"stale limit 4 s + watchdog 0.5 s: rescued after {rescued}; runs again after {stopwatch}")


def test_a_stopped_supervisor_wakes_up_too_late(yard: Yard, stopwatch: Stopwatch, figure: list[str]) -> None:
    """SIGSTOP the supervisor and its tree past the stale limit: another one takes over; when the old ones wake they
    write nothing and are dead within a moment."""
    (id,) = yard.add("work", **ENDLESS)
    old = yard.start("one", **STALE)
    yard.wait_for_results(id)
    runner, lease = yard.runner_of(id), yard.job(id).run_lease
    frozen = freeze(yard, old)
    yard.ready(yard.start("two", **STALE))
    yard.runner_of(id, after=lease)
    send(frozen, signal.SIGCONT)
    with stopwatch:
        eventually("the old runner is dead", lambda: not alive(runner))
    end_and_count(yard, [id])
    assert "rescued" in yard.supervisors[1].log
    figure.append(f"0 writes of the old attempt; its tree dead {stopwatch} after waking")


def freeze(yard: Yard, supervisor: SupervisorProcess) -> list[int]:
    """Stop a supervisor and all below it, at a moment when none of them holds SQLite's one lock for writing."""
    frozen = [supervisor.process.pid, *yard.processes_of(supervisor)]
    while True:
        send(frozen, signal.SIGSTOP)
        if lock_is_free(yard):
            return frozen
        send(frozen, signal.SIGCONT)


def lock_is_free(yard: Yard) -> bool:
    if yard.database.dialect != "sqlite":
        return True
    connection = sqlite3.connect(yard.database.path, timeout=0.2, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # some are there for a moment only
            os.kill(pid, number)


def test_a_busy_runner_is_not_rescued(yard: Yard, figure: list[str]) -> None:
    """A runner that holds the interpreter's lock for three times the stale limit is alive."""
    (id,) = yard.add("spin", seconds=24)
    yard.start("one", stall_after=0, **STALE_LATER)
    yard.start("two", stall_after=0, **STALE_LATER)
    job = yard.wait_for(id, Status.COMPLETED)
    assert job.crash_count == 0
    assert not any("rescued" in supervisor.log for supervisor in yard.supervisors)
    figure.append("lock held for 24 s, stale limit 8 s: 0 rescues")


def test_a_wrong_clock_rescues_nobody(yard: Yard, wrong_clock: Path, figure: list[str]) -> None:
    """Supervisors two hours ahead and two hours behind look at each other's jobs, and leave them alone."""
    ids = yard.add("work", many=3, steps=200, seconds=0.05)
    for name, offset in (("true", "0"), ("ahead", "+7200"), ("behind", "-7200")):
        wrong = {"LD_PRELOAD": str(wrong_clock), "WRONG_CLOCK": offset, "SILKLINE_RUNNER_ENVIRONMENT": "WRONG_CLOCK"}
        yard.ready(yard.start(name, slots=1, environment=wrong, **STALE_LATER))
    ended = yard.wait_for_end(ids)
    assert [job.crash_count for job in ended] == [0] * 3
    assert not any("rescued" in supervisor.log for supervisor in yard.supervisors)
    hours = {supervisor.log[:13] for supervisor in yard.supervisors}
    assert len(hours) == 3, "the clocks must really differ, also where a new hour begins between two starts"
    all_done_once(yard, ids, 200)
    figure.append("clocks +2 h and -2 h: 0 wrong rescues")


def test_sigterm_with_twenty_running_jobs(yard: Yard, stopwatch: Stopwatch, figure: list[str]) -> None:
    """An orderly end: every job saves its checkpoint and goes back to the queue, no retry counted."""
    ids = yard.add("work", many=20, steps=100_000, seconds=0.2)
    supervisor = yard.start(slots=20, grace_period=80.0)
    for id in ids:
        yard.wait_for_results(id)
    with stopwatch:
        assert supervisor.terminate() == 0
    for id in ids:
        job = yard.job(id)
        assert (job.status, job.retry_count, job.crash_count, job.exit_reason) == (Status.QUEUED, 0, 0, "released")
        assert yard.adds_up(id)
    yard.start(slots=20)
    end_and_count(yard, ids)
    figure.append(f"20 jobs queued again, exit 0 after {stopwatch}")


def test_sigterm_twice_ends_at_once_and_loses_nothing(yard: Yard) -> None:
    (deaf,) = yard.add("disobey", seconds=600)
    (id,) = yard.add("work", **ENDLESS)
    supervisor = yard.start(grace_period=600, kill_after=600)
    yard.runner_of(deaf)
    yard.wait_for_results(id)
    supervisor.signal(signal.SIGTERM)
    eventually("it is ending", lambda: "ending:" in supervisor.log)
    assert supervisor.terminate() == 0
    assert [(yard.job(each).status, yard.job(each).crash_count) for each in (deaf, id)] == [(Status.QUEUED, 0)] * 2
    assert yard.adds_up(id)

"""What a job's tree does to the machine: it leaves processes behind, it eats memory."""

import pytest

from silkline.model.job import Status, Verb
from silkline.store import jobs
from tests.chaos.conftest import Stopwatch
from tests.support.escapees import find
from tests.support.supervisors import Yard, alive, eventually


@pytest.mark.parametrize("cgroups", [True, False])
def test_leftovers_of_a_killed_job_die_with_it(
    yard: Yard, cgroups: bool, stopwatch: Stopwatch, figure: list[str]
) -> None:
    yard.start(cgroups=cgroups)
    (id,) = yard.add("escape", seconds=600)
    escaped = eventually("the processes have escaped", lambda: find(id) if len(find(id)) >= 5 else None)
    jobs.wish(yard.database, id, Verb.CANCEL)
    yard.wait_for(id, Status.CANCELLED)
    with stopwatch:
        eventually("nobody survived", lambda: not find(id))
    figure.append(f"{len(escaped)} processes escaped, 0 survived; gone {stopwatch} after the end")


@pytest.mark.parametrize("cgroups", [True, False])
def test_a_memory_bomb_is_killed_at_its_limit_and_its_siblings_are_not(
    yard: Yard, cgroups: bool, figure: list[str]
) -> None:
    limit = 256 << 20
    # Most of the limit at once, then slowly: 20 % of it take five seconds, in which even a late look is in time.
    (bomb,) = yard.add("leak", size=4 << 30, steps=42, seconds=0.4, max_retries=0)
    (sibling,) = yard.add("sleep", seconds=600)
    yard.start(memory_limit=limit, cgroups=cgroups)
    job = yard.wait_for(bomb, Status.FAILED)
    assert job.exit_reason in ("memory", "oom_kill")
    if job.exit_reason == "memory":
        used = int((job.error_message or "").partition("(")[2].split()[0]) << 20
        assert limit * 0.8 <= used <= limit * 1.2, job.error_message
    figure.append(f"limit {limit >> 20} MiB: {job.exit_reason}, {job.error_message}")
    job = yard.job(sibling)
    assert (job.status, job.attempt) == (Status.RUNNING, 1)
    assert alive(job.pid or 0)

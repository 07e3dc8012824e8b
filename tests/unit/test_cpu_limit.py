"""The CPU limit of a job: what is written into a cgroup, and what happens where no cgroup may be limited."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.kinds.site import usable_cores
from silkline.runner.cpu_affinity import Cores, limited_here, wanted_cpus
from silkline.service.cgroup import Cgroup
from silkline.service.cpu_limit import BY_AFFINITY, BY_CGROUP, limit_cpu


@pytest.fixture
def process() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started.pid
        started.kill()


def test_a_cgroup_gets_a_quota(tmp_path: Path, process: int) -> None:
    limit = limit_cpu(process, Cgroup(tmp_path), 1.5, Cores(0))
    assert limit is not None
    assert (limit.cpus, limit.by, limit.cores) == (1.5, BY_CGROUP, ())
    assert (tmp_path / "cpu.max").read_text() == "150000 100000"
    assert os.sched_getaffinity(process) == os.sched_getaffinity(0)


def test_the_kernel_refuses_a_quota_below_a_millisecond(tmp_path: Path) -> None:
    assert Cgroup(tmp_path).limit_cpu(0.001)
    assert (tmp_path / "cpu.max").read_text() == "1000 100000"


@pytest.mark.parametrize(("cpus", "nicer"), [(1, 0), (0.5, 5)])
def test_without_a_quota_affinity_and_niceness_limit(tmp_path: Path, process: int, cpus: float, nicer: int) -> None:
    before = os.getpriority(os.PRIO_PROCESS, process)
    limit = limit_cpu(process, Cgroup(tmp_path / "none"), cpus, Cores(0))
    assert limit is not None
    assert (limit.by, len(limit.cores)) == (BY_AFFINITY, 1)
    assert os.sched_getaffinity(process) == set(limit.cores)
    assert os.getpriority(os.PRIO_PROCESS, process) == min(before + nicer, 19)


def test_limited_jobs_are_spread_over_the_cores(process: int) -> None:
    cores, here = Cores(0), sorted(os.sched_getaffinity(0))
    taken = [cores.limit(process, 1) for _ in here]
    assert sorted(core for each in taken for core in each) == here
    cores.release(taken[-1])
    assert cores.limit(process, 1) == taken[-1]
    assert cores.limit(process, 1_000) == tuple(here), "never more than there are"


def test_a_process_that_has_ended_is_not_limited() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert limit_cpu(ended.pid, None, 1, Cores(0)) is None
    assert limit_cpu(os.getpid(), None, 0, Cores(0)) is None, "no limit is wanted"


def test_the_spec_comes_before_the_setting() -> None:
    assert wanted_cpus({"cpus": 0.5}, 2.0) == 0.5
    assert wanted_cpus({}, 2.0) == 2.0
    assert wanted_cpus({"cpus": "many"}, 0.0) == 0.0


def test_a_limit_here_ends_with_its_job() -> None:
    before = os.sched_getaffinity(0)
    with limited_here(0.5):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_a_limited_crawl_has_fewer_fetchers() -> None:
    cores = len(os.sched_getaffinity(0))
    assert (usable_cores(0.0), usable_cores(0.5), usable_cores(1_000)) == (cores, 1, cores)

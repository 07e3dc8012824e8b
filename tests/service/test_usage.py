"""What a job uses, and its limits, as its supervisor tells the database."""

import os
from pathlib import Path

from silkline.config import Settings
from silkline.service.cgroup import Cgroups
from silkline.service.cgroup_places import place_for_cpu_in_v1, place_in_v2
from silkline.store.fleet import fleet
from silkline.store.usage_view import UsageView, usage_of_job
from silkline.store.workers import alive
from tests.support.supervisors import Yard, eventually


def quota_of(pid: int) -> tuple[str, dict[str, int]] | None:
    """The CPU quota of the cgroup of a process, and what the kernel counted there. None: the cgroup has no quota."""
    v2, v1 = place_in_v2(), place_for_cpu_in_v1()
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        root = v2 if not names else v1 if "cpu" in names.split(",") else None
        if root is None or "silkline-" not in path:
            continue
        folder = root / path[path.index("silkline-") :]
        if (folder / "cpu.max").exists():
            quota = (folder / "cpu.max").read_text().strip()
        elif (folder / "cpu.cfs_quota_us").exists():
            quota = " ".join((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        else:
            continue
        lines = (folder / "cpu.stat").read_text().splitlines()
        return quota, {name: int(number) for name, _, number in (line.partition(" ") for line in lines)}
    return None


def kernel_limits_cpu() -> bool:
    """Whether this machine lets a supervisor set a quota of CPU time."""
    cgroups = Cgroups("test-of-cpu-limits", wanted=True)
    cgroup = cgroups.make("one")
    try:
        return cgroup is not None and cgroup.limit_cpu(1)
    finally:
        if cgroup is not None:
            cgroup.remove()
        cgroups.close()


def test_a_limited_job_is_limited_and_shown(yard: Yard) -> None:
    supervisor = yard.ready(yard.start(memory_limit=1 << 30, nice=3))
    (id,) = yard.add("work", steps=1_000_000, seconds=0.0, cpus=0.5)
    pid = yard.runner_of(id)

    def busy() -> UsageView | None:
        usage = usage_of_job(yard.database, yard.job(id), {})
        return usage if usage is not None and usage.cpus > 0.05 else None

    usage: UsageView = eventually("it is told that it uses a part of a core", busy)
    assert (usage.cpus_limit, usage.memory_limit, usage.process_count) == (0.5, 1 << 30, 1)
    (process,) = usage.processes
    assert (process.pid, process.role) == (pid, "runner")
    assert 10_000_000 < process.memory == usage.memory < 1 << 30
    assert 3 < process.open_files == usage.open_files
    if kernel_limits_cpu():
        assert usage.cpus_limited_by == "cgroup"
        assert len(os.sched_getaffinity(pid)) == len(os.sched_getaffinity(0))
        assert (found := quota_of(pid)) is not None
        assert found[0] == "50000 100000"
        eventually("the kernel counts its periods", lambda: (now := quota_of(pid)) and now[1]["nr_periods"])
    else:
        assert quota_of(pid) is None
        assert usage.cpus_limited_by == "affinity"
        assert len(os.sched_getaffinity(pid)) == 1
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 8
    assert "at most 0.5 cores" in yard.lines(id)
    seen = fleet(yard.database, alive(yard.database, Settings().stale_after))
    (machine,), (job,) = seen.machines, seen.jobs
    assert (machine.cores, machine.jobs) == (os.cpu_count(), 1)
    assert 0 < (machine.memory_used or 0) < (machine.memory_total or 0)
    assert (job.id, job.host) == (id, machine.host)
    assert job.usage is not None
    assert job.usage.processes[0].pid == pid
    assert supervisor.terminate() == 0
    assert usage_of_job(yard.database, yard.job(id), {}) is None, "it does not run any more"
    roots = [root for root in (place_in_v2(), place_for_cpu_in_v1()) if root is not None]
    assert [path for root in roots for path in root.glob(f"silkline-{job.worker_id}/**")] == [], "no cgroup is left"

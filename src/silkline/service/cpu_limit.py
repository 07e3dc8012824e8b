"""The CPU limit of an attempt: enforced by its cgroup (v2 or v1) if that is allowed, else by affinity and niceness.

With affinity, a job runs on a few cores only: on two for a limit of 1.5. For the fraction, its processes are nicer than
others, so they get less CPU time while others need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from silkline.runner.cpu_affinity import Cores
from silkline.service.cgroup import Cgroup

BY_CGROUP: Final = "cgroup"
BY_AFFINITY: Final = "affinity"


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """How many cores an attempt may use, and what enforces it. `cores`: those that it was put on."""

    cpus: float
    by: str
    cores: tuple[int, ...] = ()


def limit_cpu(pid: int, cgroup: Cgroup | None, cpus: float, cores: Cores) -> CpuLimit | None:
    """Limit a process that has neither threads nor children. None: no limit is wanted, or none is allowed."""
    if not cpus:
        return None
    if cgroup is not None and cgroup.limit_cpu(cpus):
        return CpuLimit(cpus, BY_CGROUP)
    taken = cores.limit(pid, cpus)
    return CpuLimit(cpus, BY_AFFINITY, taken) if taken else None

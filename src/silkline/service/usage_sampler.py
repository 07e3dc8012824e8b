"""Measures, in its own thread, what this machine and the processes of each attempt use.

The heartbeat stores the last measurement, so that the fleet can be seen from every machine. It never waits for one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from silkline.kinds import registry
from silkline.model.usage import MOST_PROCESSES, AttemptUsage, MachineUsage, ProcessShare, WorkerUsage
from silkline.process_usage import LEADER, RUNNER, ProcessUsage, children_by_parent, usage_of
from silkline.service.background_thread import BackgroundThread
from silkline.service.runner_process import RunnerProcess

LONGEST_INTERVAL: Final = 5.0
_KIB: Final = 1024

log = logging.getLogger("silkline.usage")


class UsageSampler(BackgroundThread):
    """`latest` is the last measurement; None before the first."""

    def __init__(self, held: Callable[[], list[RunnerProcess]], *, interval: float, memory_limit: int) -> None:
        super().__init__("usage")
        self._held = held
        self._interval = min(interval, LONGEST_INTERVAL)
        self._memory_limit = memory_limit
        self._before: dict[int, tuple[float, float]] = {}
        self.latest: WorkerUsage | None = None

    def _run(self) -> None:
        while True:
            try:
                self.latest = self.measure()
            except Exception:
                log.exception("usage could not be measured; trying again")
            if self._stopping.wait(self._interval):
                return

    def measure(self) -> WorkerUsage:
        children = [child for child in self._held() if child.wait_status is None]
        everybody = children_by_parent() if children else {}
        now: dict[int, tuple[float, float]] = {}
        attempts = [self._attempt(child, everybody, now) for child in children]
        self._before = now
        return WorkerUsage(machine_usage(), attempts)

    def _attempt(
        self, child: RunnerProcess, everybody: dict[int, list[int]], now: dict[int, tuple[float, float]]
    ) -> AttemptUsage:
        role = LEADER if registry.is_crawl(child.job.kind) else RUNNER
        found = usage_of(child.processes(everybody), child.pid, role)
        shares = [ProcessShare(one.pid, one.role, one.memory, one.open_files, self._cpus(one, now)) for one in found]
        limit = child.cpu_limit
        return AttemptUsage(
            job_id=child.job.id,
            run_lease=child.job.run_lease,
            cpus=round(sum(share.cpus for share in shares), 2),
            cpus_limit=limit.cpus if limit else None,
            cpus_limited_by=limit.by if limit else None,
            memory=sum(share.memory for share in shares),
            memory_limit=self._memory_limit or None,
            open_files=sum(share.open_files for share in shares),
            process_count=len(shares),
            processes=sorted(shares, key=lambda share: share.memory, reverse=True)[:MOST_PROCESSES],
        )

    def _cpus(self, one: ProcessUsage, now: dict[int, tuple[float, float]]) -> float:
        """The cores that a process has used since the last measurement."""
        at = time.monotonic()
        now[one.pid] = (at, one.cpu_seconds)
        before_at, before = self._before.get(one.pid, (0.0, 0.0))
        if not before_at or at <= before_at or one.cpu_seconds < before:
            return 0.0
        return round((one.cpu_seconds - before) / (at - before_at), 2)


def machine_usage(meminfo: Path = Path("/proc/meminfo")) -> MachineUsage:
    """The load and the memory of this machine."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in meminfo.read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("MemTotal", "MemAvailable"):
                found[name] = int(value.split()[0]) * _KIB
    total = found.get("MemTotal", 0)
    load = os.getloadavg()[0]
    return MachineUsage(os.cpu_count() or 1, round(load, 2), total, max(total - found.get("MemAvailable", 0), 0))

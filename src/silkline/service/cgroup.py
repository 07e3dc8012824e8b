"""A cgroup v2 for each attempt, if this process may create one.

A cgroup knows exactly which processes to kill and, with the controllers of memory and CPU, limits them exactly. Where
the CPU controller is in cgroup v1, an attempt with a CPU limit gets a second cgroup there. Without a cgroup,
`process_table` and `limits` read the same facts from /proc, and `cpu_limit` uses affinity.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from silkline.service.cgroup_places import place_for_cpu_in_v1, place_in_v2

REMOVE_TRIES = 50
CPU_PERIOD = 100_000  # microseconds, the default of the kernel
LEAST_QUOTA = 1_000  # microseconds, the least that the kernel allows


class Cgroup:
    """One attempt's cgroup."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, pid: int) -> bool:
        try:
            (self._path / "cgroup.procs").write_text(str(pid))
        except OSError:
            return False
        return True

    def limit_memory(self, limit: int) -> bool:
        """Whether the kernel now enforces the limit."""
        try:
            (self._path / "memory.max").write_text(str(limit))
            with contextlib.suppress(OSError):
                (self._path / "memory.swap.max").write_text("0")
        except OSError:
            return False
        return True

    def limit_cpu(self, cpus: float) -> bool:
        """Allow its processes this many cores. Returns whether the kernel now enforces the limit."""
        quota = max(int(cpus * CPU_PERIOD), LEAST_QUOTA)
        try:
            (self._path / "cpu.max").write_text(f"{quota} {CPU_PERIOD}")
        except OSError:
            return self._limit_cpu_in_v1(quota)
        return True

    def _limit_cpu_in_v1(self, quota: int) -> bool:
        path = self._in_v1()
        if path is None:
            return False
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / "cpu.cfs_period_us").write_text(str(CPU_PERIOD))
            (path / "cpu.cfs_quota_us").write_text(str(quota))
            for pid in self.processes():
                (path / "cgroup.procs").write_text(str(pid))
        except OSError:
            _remove(path, tries=1)
            return False
        return True

    def _in_v1(self) -> Path | None:
        """The place of this cgroup in the CPU hierarchy of cgroup v1, if there is one."""
        v2, v1 = place_in_v2(), place_for_cpu_in_v1()
        if v1 is None or v2 is None or not self._path.is_relative_to(v2):
            return None
        return v1 / self._path.relative_to(v2)

    def processes(self) -> set[int]:
        try:
            return {int(pid) for pid in (self._path / "cgroup.procs").read_text().split()}
        except OSError:
            return set()

    def oom_kills(self) -> int:
        """How often the kernel killed a process here because of memory. Signal 9 alone does not prove that."""
        with contextlib.suppress(OSError, ValueError):
            for line in (self._path / "memory.events").read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
        return 0

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            (self._path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Remove the folder. That works only after the last process has ended, so try for half a second."""
        _remove(self._path, tries=REMOVE_TRIES)
        if (path := self._in_v1()) is not None:
            _remove(path, tries=REMOVE_TRIES)


class Cgroups:
    """Creates the cgroups of attempts. `make` returns None if this process may not create one."""

    def __init__(self, worker_id: str, *, wanted: bool) -> None:
        self._base = _make_base(worker_id) if wanted else None

    def make(self, name: str) -> Cgroup | None:
        if self._base is None:
            return None
        path = self._base / name
        try:
            path.mkdir()
        except OSError:
            return None
        return Cgroup(path)

    def close(self) -> None:
        if self._base is not None:
            Cgroup(self._base).remove()


def _remove(path: Path, *, tries: int) -> None:
    for _ in range(tries):
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return


def remove_of(worker_id: str) -> None:
    """Remove the cgroups that a dead supervisor left, and kill the processes that still run in them."""
    base = _base_of(worker_id)
    if base is None or not base.is_dir():
        return
    for path in (*(entry for entry in base.iterdir() if entry.is_dir()), base):
        cgroup = Cgroup(path)
        cgroup.kill()
        cgroup.remove()


def _base_of(worker_id: str) -> Path | None:
    place = place_in_v2()
    return None if place is None else place / f"silkline-{worker_id}"


def _make_base(worker_id: str) -> Path | None:
    base = _base_of(worker_id)
    if base is None:
        return None
    try:
        base.mkdir()
    except OSError:
        return None
    if not (base / "cgroup.kill").exists() or not os.access(base / "cgroup.procs", os.W_OK):
        base.rmdir()
        return None
    for folder in (base.parent, base):
        for controller in ("memory", "cpu"):
            with contextlib.suppress(OSError):
                (folder / "cgroup.subtree_control").write_text(f"+{controller}")
    return base

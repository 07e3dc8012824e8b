"""The processes of a job, read from /proc.

The supervisor is a subreaper: a process whose parent dies becomes a child of the supervisor. So the processes of a job
are all descendants of its runner, plus those adopted children that have the tag of the job (started programs have it in
their environment, forked processes in their name).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

from silkline.process_usage import PAGE, children_by_parent
from silkline.runner.leftovers import environment
from silkline.runner.process import process_name
from silkline.runner.protocol import JOB_TAG

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def own_children(tasks: Path = Path("/proc/self/task")) -> set[int]:
    """The children of this process. Reads the list of the kernel, or else all processes of the machine."""
    found: set[int] = set()
    for task in tasks.iterdir():
        try:
            found.update(int(pid) for pid in (task / "children").read_text().split())
        except FileNotFoundError:
            if task.exists():  # the thread still exists, so this kernel has no such list
                return set(children_by_parent()[os.getpid()])
    return found


def belongs_to(pid: int, job_id: str, run_lease: int) -> bool:
    """Whether an adopted process belongs to this attempt."""
    if environment(pid).get(JOB_TAG) == f"{job_id}:{run_lease}":
        return True
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == process_name(job_id, run_lease)
    except OSError:
        return False


def resident(pids: set[int]) -> int:
    """Resident bytes. Shared memory is counted for each process, so the sum is never too low. Fast."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return total


def proportional(pids: set[int]) -> int:
    """Proportional bytes (PSS): shared memory is divided among the processes that share it. 1 ms for each process."""
    total = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
                    break
        except OSError:
            total += resident({pid})
    return total


def kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def reap(pids: set[int]) -> None:
    """Wait for the processes among these that are our own children, so that no zombie stays."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

"""The processes of a job, read from /proc.

The supervisor is a subreaper: whatever a runner's tree leaves behind becomes the supervisor's own child. So the tree of
a job is everything below its runner, plus those adopted children that carry the job's mark (in the environment of
programs it started, in the name of processes it forked).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections import defaultdict
from pathlib import Path

from silkline.runner.leftovers import environment, processes
from silkline.runner.process import process_name
from silkline.runner.protocol import MARK_JOB

PR_SET_CHILD_SUBREAPER = 36
PAGE = os.sysconf("SC_PAGE_SIZE")


def become_subreaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def children_by_parent() -> dict[int, list[int]]:
    """One look at every process of the machine: about 20 µs for each."""
    found: dict[int, list[int]] = defaultdict(list)
    for pid in processes():
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = Path(f"/proc/{pid}/stat").read_bytes()
            state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in (b"Z", b"X"):
                found[int(parent)].append(pid)
    return found


def own_children(tasks: Path = Path("/proc/self/task")) -> set[int]:
    """The children of this process, without looking at any other where the kernel lists them."""
    found: set[int] = set()
    for task in tasks.iterdir():
        try:
            found.update(int(pid) for pid in (task / "children").read_text().split())
        except FileNotFoundError:
            if task.exists():  # it was not a thread that just ended: this kernel has no such list
                return set(children_by_parent()[os.getpid()])
    return found


def below(root: int, children: dict[int, list[int]]) -> set[int]:
    """Everything below `root`, and itself."""
    found, waiting = {root}, [root]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def belongs_to(pid: int, job_id: str, run_lease: int) -> bool:
    """Whether an adopted process was left behind by this attempt."""
    if environment(pid).get(MARK_JOB) == f"{job_id}:{run_lease}":
        return True
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == process_name(job_id, run_lease)
    except OSError:
        return False


def resident(pids: set[int]) -> int:
    """Resident bytes, shared memory counted in each process: quick, and never less than the truth."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return total


def proportional(pids: set[int]) -> int:
    """Proportional bytes (PSS): shared memory divided by those who share it. About 1 ms for each process."""
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
    """Wait for those that have become our own children, so that no zombie stays."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

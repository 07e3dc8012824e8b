"""Turns a new process into a runner: it gets its own session and its limits, and dies with its supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
ADOPTION_LIMIT = 10.0
NICEST = 19
# The nice value of the process that starts runners, read before any of them is started.
_INHERITED = os.getpriority(os.PRIO_PROCESS, 0)

_libc = ctypes.CDLL(None, use_errno=True)


class Orphaned(Exception):
    """The supervisor is dead."""


def die_with_parent(expected: int, number: int = signal.SIGKILL) -> None:
    """Ask the kernel for this signal when the parent ends, and make sure that the parent is still the expected one.

    The fork server forks twice, so a runner becomes a child of the supervisor, which is the subreaper, a moment after
    its start. Wait for that first.
    """
    give_up = time.monotonic() + ADOPTION_LIMIT
    while os.getppid() != expected:
        if time.monotonic() > give_up:
            raise Orphaned
        select.select((), (), (), 0.0005)
    if _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != expected:
        raise Orphaned


def name_process(job_id: str, run_lease: int) -> None:
    """Show in `ps` and to the supervisor which job this process belongs to. Forked children inherit the name."""
    _libc.prctl(PR_SET_NAME, process_name(job_id, run_lease).encode(), 0, 0, 0)


def process_name(job_id: str, run_lease: int) -> str:
    """The random end of the job id, and the lease. At most 15 characters, the limit of the kernel."""
    return f"silk-{job_id[-6:]}-{run_lease % 1000}"


def settle(stdout: int, stderr: int, *, nice: int, open_files: int) -> None:
    """Set up this process: its own session, the given output, no input, default signals, nice value, open files."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    for descriptor in {null, stdout, stderr} - {0, 1, 2}:
        os.close(descriptor)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    with contextlib.suppress(OSError):
        # The supervisor may have made it even nicer already (cpu_affinity.py).
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, min(max(own, _INHERITED + nice), NICEST))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = open_files if most == resource.RLIM_INFINITY else min(open_files, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))

"""Finds and kills the processes that have the tag of a dead supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from silkline.process_usage import process_ids
from silkline.runner.protocol import SUPERVISOR_TAG

ROUNDS = 50


def environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with. Empty if it ended, is a zombie, or belongs to another user."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in data.split(b"\0") if item)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}


def tagged(worker_id: str) -> list[int]:
    """Every running process that has the tag of the supervisor `worker_id`."""
    needle = f"{SUPERVISOR_TAG}={worker_id}".encode()
    found = []
    for pid in process_ids():
        with contextlib.suppress(OSError):
            data = Path(f"/proc/{pid}/environ").read_bytes()
            if data.startswith(needle + b"\0") or b"\0" + needle + b"\0" in data:
                found.append(pid)
    return found


def kill_tagged(worker_id: str, *, spare: int = 0) -> int:
    """Kill these processes, and those that they start meanwhile. Returns how many there were."""
    seen: set[int] = set()
    for _ in range(ROUNDS):
        alive = [pid for pid in tagged(worker_id) if pid != spare]
        if not alive:
            break
        for pid in alive:
            seen.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return len(seen)

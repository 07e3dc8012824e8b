"""What a worker uses: its machine, its attempts and their processes. A supervisor stores it with each heartbeat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

MOST_PROCESSES: Final = 40  # of one attempt; `process_count` has the number of all
MOST_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class MachineUsage:
    """`load` is the average of the last minute; memory is in bytes."""

    cores: int
    load: float
    memory_total: int
    memory_used: int


@dataclass(frozen=True, slots=True)
class ProcessShare:
    """One process of an attempt. `cpus`: the cores that it used since the measurement before."""

    pid: int
    role: str
    memory: int
    open_files: int
    cpus: float


@dataclass(frozen=True, slots=True)
class AttemptUsage:
    """The processes of one attempt, and the limits of all of them together. A limit of null: none."""

    job_id: str
    run_lease: int
    cpus: float
    cpus_limit: float | None
    cpus_limited_by: str | None
    memory: int
    memory_limit: int | None
    open_files: int
    process_count: int
    processes: list[ProcessShare]


@dataclass(frozen=True, slots=True)
class WorkerUsage:
    machine: MachineUsage
    attempts: list[AttemptUsage]


def to_text(usage: WorkerUsage) -> str:
    """As JSON of bounded size: a worker with many attempts does not list their processes."""
    import msgspec  # most commands do not need it

    text = msgspec.json.encode(usage)
    if len(text) > MOST_BYTES:
        short = [replace(each, processes=[]) for each in usage.attempts]
        text = msgspec.json.encode(WorkerUsage(usage.machine, short))
    return text.decode() if len(text) <= MOST_BYTES else msgspec.json.encode(WorkerUsage(usage.machine, [])).decode()


def from_text(text: str | None) -> WorkerUsage | None:
    """None: nothing was stored, or in the format of another version."""
    import msgspec

    try:
        return msgspec.json.decode(text, type=WorkerUsage) if text else None
    except (ValueError, RecursionError):
        return None

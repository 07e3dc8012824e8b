"""What processes use: memory, CPU time and open files, with the role of each process. Reads /proc.

The leader of a crawl logs it, and a supervisor reports it for all its attempts.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = os.sysconf("SC_PAGE_SIZE")
TICKS: Final = os.sysconf("SC_CLK_TCK")
LEADER, RUNNER, FETCHER, PARSER, READER, BROWSER, OTHER = (
    *("leader", "runner", "fetcher", "parser", "reader", "browser", "other"),
)
_BROWSERS: Final = (b"chrom", b"headless")
_CHILD: Final = b"silkline.crawl.child_process"
_FORKED_BY: Final = (
    b"silkline.crawl.reader_process",
    _CHILD,
    b"silkline.runner.server",
    b"silkline.runner",
)
# Indexes of fields in /proc/PID/stat, counted from the state of the process: proc_pid_stat(5).
_PARENT, _USER_TIME, _SYSTEM_TIME = 1, 11, 12
_STAT_BYTES: Final = 512


class ProcessUsage(NamedTuple):
    """One process. `memory` is its resident memory in bytes, `cpu_seconds` the CPU time since its start."""

    pid: int
    role: str
    memory: int
    open_files: int
    cpu_seconds: float


def process_ids() -> Iterator[int]:
    """Every process of the machine."""
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            yield int(entry.name)


def children_by_parent() -> dict[int, list[int]]:
    """The children of every process of the machine. Takes about 20 µs for each process."""
    found: dict[int, list[int]] = defaultdict(list)
    for pid in process_ids():
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - half the cost of Path
                stat = file.read(_STAT_BYTES)
            state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in (b"Z", b"X"):
                found[int(parent)].append(pid)
    return found


def below(root: int, children: dict[int, list[int]]) -> set[int]:
    """`root` and all its descendants."""
    found, waiting = {root}, [root]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def usage_of(pids: Iterable[int], root: int, root_role: str) -> list[ProcessUsage]:
    """What these processes use. `root` is the runner. Takes about 0.1 ms for each process."""
    return [usage for pid in sorted(pids) if (usage := _usage(pid, root_role if pid == root else "")) is not None]


class RoleUsage(NamedTuple):
    """The processes of one role together."""

    role: str
    processes: int
    memory: int
    open_files: int


def by_role(usages: Iterable[ProcessUsage]) -> list[RoleUsage]:
    """The sum for each role, in the order of the first process of each."""
    found: dict[str, RoleUsage] = {}
    for one in usages:
        _, number, memory, files = found.get(one.role) or RoleUsage(one.role, 0, 0, 0)
        found[one.role] = RoleUsage(one.role, number + 1, memory + one.memory, files + one.open_files)
    return list(found.values())


def _usage(pid: int, role: str) -> ProcessUsage | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        name, _, rest = stat.partition(b"(")[2].rpartition(b")")
        fields = rest.split()
        cpu = (int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / TICKS
        if fields[0] in (b"Z", b"X"):
            return None
        return ProcessUsage(pid, role or _role(pid, name, fields[_PARENT]), resident_bytes(pid), open_files(pid), cpu)
    except (OSError, ValueError, IndexError):  # it has ended
        return None


def resident_bytes(pid: int) -> int:
    """The resident memory of a process. Raises `OSError` if it has ended."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def open_files(pid: int) -> int:
    """The number of open files of a process; 0 if this process may not know it."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - only their number is needed
    except OSError:
        return 0


def is_browser(name: bytes) -> bool:
    """Whether a process with this name is a browser, or a part of one."""
    return name.startswith(_BROWSERS)


def _role(pid: int, name: bytes, parent: bytes) -> str:
    if is_browser(name):
        return BROWSER
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    if _CHILD in arguments:
        role, *_, of = arguments[arguments.index(_CHILD) + 1 :][:5] or (b"", b"")  # role, three descriptors, its parent
        if of == parent:
            return FETCHER if role == FETCHER.encode() else PARSER
    # A reader is a program of its own, or a copy of the process that needs it, with the arguments of that process.
    return READER if any(argument in _FORKED_BY for argument in arguments) else OTHER

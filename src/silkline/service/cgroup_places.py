"""Where this process may make cgroups: its own place in cgroup v2, and in the CPU hierarchy of cgroup v1.

With the hybrid layout of systemd, cgroup v2 knows which processes belong together, but the CPU controller is in v1.
"""

from __future__ import annotations

import contextlib
from pathlib import Path


def place_in_v2() -> Path | None:
    mount = next((Path(fields[4]) for fields, kind, _ in _mounts() if kind == "cgroup2"), None)
    return _below(mount, _own_paths().get(""))


def place_for_cpu_in_v1() -> Path | None:
    """None if there is no CPU controller in cgroup v1."""
    mount = next(
        (Path(fields[4]) for fields, kind, options in _mounts() if kind == "cgroup" and "cpu" in options), None
    )
    own = next((path for names, path in _own_paths().items() if "cpu" in names.split(",")), None)
    return _below(mount, own)


def _below(mount: Path | None, own: str | None) -> Path | None:
    return None if mount is None or own is None else mount / own.lstrip("/")


def _mounts() -> list[tuple[list[str], str, list[str]]]:
    """The fields, the type and the options of each mount: proc_pid_mountinfo(5)."""
    found = []
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            head, _, tail = line.partition(" - ")
            kind, _, options = tail.split(" ", 2)
            found.append((head.split(), kind, options.split(",")))
    return found


def _own_paths() -> dict[str, str]:
    """The cgroup of this process in each hierarchy, by the names of its controllers; those of v2 are empty."""
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            found[names] = path
    return found

"""What the metrics tell about this machine: its processes by role, and the disk. Reads /proc and the file system."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import silkline
from silkline.metrics.gather import Gathered
from silkline.process_usage import BROWSER, OTHER, is_browser, open_files, process_ids, resident_bytes


def look_at_machine(gathered: Gathered, data: Path, watermark: int) -> None:
    """Add the families of the machine. `gathered` knows which processes are alive."""
    for pid, role in roles(gathered.alive).items():
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended since
            resident = resident_bytes(pid)
            gathered.numbers["silkline_processes"][role,] += 1
            gathered.numbers["silkline_process_resident_bytes"][role,] += resident
            gathered.numbers["silkline_process_open_files"][role,] += open_files(pid)
    with contextlib.suppress(OSError):
        gathered.set("silkline_disk_free_bytes", shutil.disk_usage(data).free)
    gathered.set("silkline_disk_watermark_bytes", watermark)
    gathered.set("silkline_build_info", 1, silkline.__version__)


def roles(alive: dict[int, str]) -> dict[int, str]:
    """The role of each process of Silkline. Processes without a meter have one above them that started them."""
    parents = dict(_parents())
    found = {pid: role for pid, role in alive.items() if pid in parents}
    for pid in parents:
        above = pid
        for _ in range(64):
            if above in found or above <= 1:
                break
            above = parents.get(above, (0, b""))[0]
        if above in found and pid not in found:
            found[pid] = BROWSER if is_browser(parents[pid][1]) else OTHER
    return found


def _parents() -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Each process of the machine, with its parent and its name. Takes about 20 µs for each."""
    for pid in process_ids():
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = Path(f"/proc/{pid}/stat").read_bytes()
            name = stat[stat.index(b"(") + 1 : stat.rindex(b")")]
            state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in (b"Z", b"X"):
                yield pid, (int(parent), name)

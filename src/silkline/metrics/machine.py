"""What the metrics tell about this machine: its processes by role, and the disk. Reads /proc and the file system."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import silkline
from silkline.metrics.gather import Gathered

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BROWSERS: Final = ("chrom", "headless")
BROWSER: Final = "browser"
OTHER: Final = "other"


def look_at_machine(gathered: Gathered, data: Path, watermark: int) -> None:
    """Add the families of the machine. `gathered` knows which processes are alive."""
    for pid, role in roles(gathered.alive).items():
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended since
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
            gathered.numbers["silkline_processes"][role,] += 1
            gathered.numbers["silkline_process_resident_bytes"][role,] += resident
            gathered.numbers["silkline_process_open_files"][role,] += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
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
            above = parents.get(above, (0, ""))[0]
        if above in found and pid not in found:
            found[pid] = BROWSER if parents[pid][1].startswith(_BROWSERS) else OTHER
    return found


def _parents() -> Iterator[tuple[int, tuple[int, str]]]:
    """Each process of the machine, with its parent and its name. Takes about 20 µs for each."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(f"/proc/{entry.name}/stat").read_bytes()
                name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
                state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
                if state not in (b"Z", b"X"):
                    yield int(entry.name), (int(parent), name)

"""Decides which processes of a browser use too much memory: that of one page, or the browser as a whole.

Only the process of a page is the fault of a known page. Blobs, layers, pictures and bodies of requests are in the other
processes, which all pages of the browser share.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from silkline.fetch.settings import RenderLimits

_PAGE_PROCESS: Final = "renderer"
# Without the files that are mapped, such as the program: all processes share them, and the kernel can drop them.
_KILOBYTES: Final = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB$", re.M)


class TooLarge(NamedTuple):
    """The page processes that are too large, and why the whole browser is too large (empty: it is not)."""

    pages: tuple[int, ...]
    browser: str


def memory_of(pid: int) -> int:
    """The bytes in memory that a process holds; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return sum(int(found) << 10 for found in _KILOBYTES.findall(Path(f"/proc/{pid}/status").read_text()))
    return 0


def too_large(kinds: Mapping[int, str], sizes: Mapping[int, int], pages: int, limits: RenderLimits) -> TooLarge:
    """Compare the processes of a browser with `pages` open pages with the limits. `kinds`: the type of each process.

    If a page process is too large, only this one ends now: the rest may be small enough without it.
    """
    large = tuple(pid for pid, kind in kinds.items() if kind == _PAGE_PROCESS and sizes[pid] > limits.max_memory)
    if large:
        return TooLarge(large, "")
    for pid, kind in kinds.items():
        if kind != _PAGE_PROCESS and sizes[pid] > limits.max_browser_memory:
            return TooLarge((), f"the browser ({kind}) took more than {limits.max_browser_memory // 1_000_000} MB")
    most = limits.max_total_memory + pages * limits.total_memory_per_page
    if sum(sizes.values()) > most:
        return TooLarge((), f"the browser took more than {most // 1_000_000} MB")
    return TooLarge((), "")

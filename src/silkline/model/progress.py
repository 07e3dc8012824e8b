"""The progress of a job as two numbers, for the command line and the web page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pages_of(counts: Mapping[str, Any]) -> tuple[int, int]:
    """The number of stored pages, and of URLs that were or will be fetched (without skipped URLs)."""
    return counts["done"] + counts["unchanged"], counts["discovered"] - counts["skipped"]

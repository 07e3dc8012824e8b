"""How far a job is, in two numbers: the same at the command line and on the web page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pages_of(counts: Mapping[str, Any]) -> tuple[int, int]:
    """The pages that are stored, and the URLs that were or will be fetched: skipped URLs are no work."""
    return counts["done"] + counts["unchanged"], counts["discovered"] - counts["skipped"]

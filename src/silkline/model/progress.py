"""The progress of a job in two numbers: the same at the command line and on the web page."""

from __future__ import annotations

from typing import Protocol


class UrlCounts(Protocol):
    @property
    def discovered(self) -> int: ...
    @property
    def done(self) -> int: ...
    @property
    def unchanged(self) -> int: ...
    @property
    def skipped(self) -> int: ...


def pages_of(counts: UrlCounts) -> tuple[int, int]:
    """The number of stored pages, and the number of URLs that were or will be fetched. Skipped URLs do not count."""
    return counts.done + counts.unchanged, counts.discovered - counts.skipped

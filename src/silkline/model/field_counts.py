"""On how many pages of a job each field was found. The counts are stored with the counters of the job, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

KEY: Final = "fields"
"""The name of the counts in the live values of a job."""


class FieldCount(NamedTuple):
    """Pages for which the field was asked, those on which it was found, and of these those where it did not convert."""

    asked: int = 0
    found: int = 0
    wrong: int = 0

    @property
    def share(self) -> float:
        """The share of pages that have a good value; 1 if no page was asked."""
        return (self.found - self.wrong) / self.asked if self.asked else 1.0


def field_counts_in(live: Mapping[str, Any]) -> dict[str, FieldCount]:
    """The counts in the live values of a job, by the name of the field. Values of another form are ignored."""
    stored = live.get(KEY)
    if not isinstance(stored, Mapping):
        return {}
    return {
        name: FieldCount(*numbers)
        for name, numbers in stored.items()
        if isinstance(numbers, list) and len(numbers) == 3 and all(isinstance(number, int) for number in numbers)
    }


def in_words(counts: Mapping[str, FieldCount]) -> list[str]:
    """One line for each field."""
    lines = []
    for name, count in counts.items():
        wrong = f", {count.wrong:,} of them not converted" if count.wrong else ""
        share = f" ({count.found / count.asked:.0%})" if count.asked else ""
        lines.append(f"{name}: found on {count.found:,} of {count.asked:,} pages{share}{wrong}")
    return lines

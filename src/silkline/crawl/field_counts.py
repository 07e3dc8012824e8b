"""Counts on how many pages each field was found, and decides whether that is enough for the job."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from silkline.crawl.plan import Plan
from silkline.errors import FieldsMissing
from silkline.model.field_counts import KEY, FieldCount, field_counts_in, in_words
from silkline.parse.fields import FOUND, NOT_ASKED, WRONG


class FieldCounts:
    """The counts of one job, over all its attempts. They become durable with the results that they count."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._counts = [[0, 0, 0] for _ in names]

    def load(self, live: Mapping[str, Any]) -> None:
        """Continue with the counts of an earlier attempt."""
        known = field_counts_in(live)
        self._counts = [list(known.get(name, FieldCount())) for name in self._names]

    def add(self, tally: bytes) -> None:
        """Count one page. It has a byte for each field."""
        for count, state in zip(self._counts, tally, strict=False):
            if state != NOT_ASKED:
                count[0] += 1
                count[1] += state in (FOUND, WRONG)
                count[2] += state == WRONG

    def live(self) -> dict[str, Any]:
        """For the live values of the job."""
        return {KEY: dict(zip(self._names, map(list, self._counts), strict=True))} if self._names else {}

    def by_name(self) -> dict[str, FieldCount]:
        return {name: FieldCount(*count) for name, count in zip(self._names, self._counts, strict=True)}


def check_fields(plan: Plan, counts: FieldCounts, log: logging.Logger) -> None:
    """Raise `FieldsMissing` if a field has a good value on too few pages, at the end of a job.

    Only required fields count, or all fields if none is required.
    """
    found = counts.by_name()
    for line in in_words(found):
        log.info("%s", line)
    if not plan.require_fields:
        return
    needed = [field.name for field in plan.fields if field.required] or list(found)
    short = [name for name in needed if not found[name].asked or found[name].share < plan.require_fields]
    if short:
        told = "; ".join(in_words({name: found[name] for name in short}))
        raise FieldsMissing(f"fewer than {plan.require_fields:.0%} of the pages have these fields: {told}")

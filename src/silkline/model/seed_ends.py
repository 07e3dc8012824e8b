"""Why a job that stored nothing has failed, from how its seeds ended. See decision 0021. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from silkline.model.ledger import DONE, FAILED, REDIRECTED, UNCHANGED, RootEnd

SEEDS: Final = ("seed", "redirect")
_SHOWN: Final = 3


def verdict(ends: Collection[RootEnd]) -> str | None:
    """Why a job that stored nothing has failed. None: it has not."""
    failed = [end for end in ends if end.state == FAILED]
    if not failed or any(end.state in (DONE, UNCHANGED) for end in ends):
        return None
    whole = "every seed failed" if all(end.state == FAILED for end in _last(ends)) else "nothing could be stored"
    return f"{whole}: {told(failed)}"


def _last(ends: Collection[RootEnd]) -> list[RootEnd]:
    """The ends without seeds that only redirect: their targets are checked instead."""
    return [end for end in ends if end.reason != REDIRECTED]


def told(ends: Collection[RootEnd]) -> str:
    """The first of these ends, in words."""
    told = [f"{end.url} ({end.reason}{f': {end.detail[:200]}' if end.detail else ''})" for end in list(ends)[:_SHOWN]]
    more = sum(end.urls for end in ends) - len(told)
    return ", ".join(told) + (f", and {more:,} more" if more else "")

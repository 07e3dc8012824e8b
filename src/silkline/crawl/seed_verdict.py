"""Whether a job whose work is over has brought anything, and what a retry does when it has not. See decision 0021.

- Something was stored: the job is completed.
- Nothing was stored, and a seed failed (a name that does not resolve, a refused connection, a 404): the job has failed.
- Nothing was stored, and every seed was left out on purpose (robots.txt, noindex, the scope): that is no failure of the
  machine. The job is completed, and its log and its message say that nothing was stored.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from silkline.errors import SeedsFailed
from silkline.model.kind import Progress
from silkline.model.ledger import DONE, FAILED, REDIRECTED, SKIPPED, UNCHANGED, RootEnd
from silkline.store import urls

SEEDS: Final = ("seed", "redirect")
_SHOWN: Final = 3


def check_seeds(progress: Progress, log: logging.Logger, vias: Collection[str] | None = SEEDS) -> None:
    """Raise `SeedsFailed` if the job stored nothing because its seeds failed. `vias`: what counts as a seed."""
    counts = urls.counts(progress.database, progress.job.id)
    if counts.done or counts.unchanged:
        return
    ends = [end for end in urls.root_ends(progress.database, progress.job.id) if vias is None or end.found_via in vias]
    problem = verdict(ends)
    if problem is not None:
        raise SeedsFailed(problem)
    skipped = [end for end in ends if end.state == SKIPPED and end.reason != REDIRECTED]
    if skipped:
        log.info("nothing was stored: every seed was skipped: %s", _told(skipped))


def verdict(ends: Collection[RootEnd]) -> str | None:
    """Why a job that stored nothing has failed; None: it has not."""
    failed = [end for end in ends if end.state == FAILED]
    if not failed or any(end.state in (DONE, UNCHANGED) for end in ends):
        return None
    whole = "every seed failed" if all(end.state == FAILED for end in _last(ends)) else "nothing could be stored"
    return f"{whole}: {_told(failed)}"


def try_failed_seeds_again(progress: Progress) -> bool:
    """A retry of a job that stored nothing, and has nothing left to do, begins with its failed seeds again."""
    database, id = progress.database, progress.job.id
    counts = urls.counts(database, id)
    if counts.done or counts.unchanged or counts.queued or counts.in_flight or not counts.failed:
        return False
    reasons = {end.reason for end in urls.root_ends(database, id) if end.state == FAILED and end.reason}
    return sum(urls.requeue(database, id, reason) for reason in sorted(reasons)) > 0


def _last(ends: Collection[RootEnd]) -> list[RootEnd]:
    """Without the seeds that only pointed elsewhere: what they point at stands for them."""
    return [end for end in ends if end.reason != REDIRECTED]


def _told(ends: Collection[RootEnd]) -> str:
    told = [f"{end.url} ({end.reason}{f': {end.detail[:200]}' if end.detail else ''})" for end in list(ends)[:_SHOWN]]
    more = sum(end.urls for end in ends) - len(told)
    return ", ".join(told) + (f", and {more:,} more" if more else "")

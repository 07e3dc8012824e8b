"""Whether a finished job has stored anything, and what a retry does if it has not. See decision 0021.

- Something was stored: the job is completed.
- Nothing was stored, and a seed failed (a name that does not resolve, a refused connection, a 404): the job has failed.
- Nothing was stored, and every seed was skipped on purpose (robots.txt, noindex, the scope): this is not a technical
  failure. The job is completed, and its log and its message say that nothing was stored.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial

from silkline.errors import SeedsFailed
from silkline.model.kind import Progress
from silkline.model.ledger import REDIRECTED, SKIPPED
from silkline.model.seed_ends import SEEDS, told, verdict
from silkline.store import urls
from silkline.store.jobs import fence


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
        log.info("nothing was stored: every seed was skipped: %s", told(skipped))


def try_failed_seeds_again(progress: Progress) -> bool:
    """For a retry of a job that stored nothing and has nothing left to do: requeue its failed seeds."""
    database, id = progress.database, progress.job.id
    counts = urls.counts(database, id)
    if counts.done or counts.unchanged or counts.queued or counts.in_flight or not counts.failed:
        return False
    return urls.requeue_failed_roots(database, id, partial(fence, job=progress.job)) > 0

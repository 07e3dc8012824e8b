"""The reader of a job that fetches pages: with the limits from the settings, and the inputs that were blamed before."""

from __future__ import annotations

import msgspec

from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.plan import Plan, Tuning
from silkline.crawl.suspects import Suspects
from silkline.model.kind import Context, KindSettings
from silkline.reading_marks import ReadingMarks
from silkline.store import blames


def limits_of(settings: KindSettings, tuning: Tuning) -> Tuning:
    """The tuning with the limits that the operator set for reading."""
    return msgspec.structs.replace(tuning, read_seconds=settings.read_seconds, read_memory=settings.read_memory)


def reader_for(context: Context[object], plan: Plan) -> GuardedReader:
    """Must be called inside an event loop."""
    progress = context.progress
    suspects = Suspects(blames.listed(progress.database, progress.job.id)) if progress.job.attempt > 1 else Suspects()
    return GuardedReader(
        plan, ReadingMarks.open(context.marks), suspects=suspects, isolate_all=not context.marks, owns_marks=True
    )

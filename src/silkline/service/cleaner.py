"""Deletes old finished jobs and their logs."""

from __future__ import annotations

import logging
from datetime import timedelta

from silkline import warc_files
from silkline.config import Settings
from silkline.errors import NotFound, Refused
from silkline.model.database import Database
from silkline.store import checkpoint_counts, job_removal, logs, workers

DELETE_DEAD_AFTER = timedelta(days=1)
FORGET_COUNTS_AFTER = timedelta(days=90)

log = logging.getLogger("silkline.cleaner")


class Cleaner:
    """Deletes the jobs and logs that are older than the settings allow, a limited number in each run."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    def clean(self) -> int:
        """Clean once. Returns how many jobs were deleted."""
        now, keep = self._database.now(), self._settings
        for id in job_removal.finish_deletions(self._database):
            self._remove_files(id)
        workers.delete_dead(self._database, now - DELETE_DEAD_AFTER)
        checkpoint_counts.forget(self._database, now - FORGET_COUNTS_AFTER)
        deleted = 0
        if keep.keep_jobs_days:
            deleted += self._delete(
                job_removal.finished_before(self._database, now - timedelta(days=keep.keep_jobs_days))
            )
        if keep.keep_jobs_count:
            deleted += self._delete(job_removal.finished_beyond(self._database, keep.keep_jobs_count))
        if keep.keep_logs_days:
            logs.expire(self._database, now - timedelta(days=keep.keep_logs_days))
        return deleted

    def _delete(self, ids: list[str]) -> int:
        for id in ids:
            removed = [id]
            try:
                removed = job_removal.delete(self._database, id)
            except Refused:
                continue  # it was retried meanwhile
            except NotFound:
                pass  # it was deleted meanwhile; its log file may still exist here
            for each in removed:
                self._remove_files(each)
        if ids:
            log.info("retention deleted %d finished jobs", len(ids))
        return len(ids)

    def _remove_files(self, id: str) -> None:
        warc_files.remove(self._settings.data, self._settings.logs, id)

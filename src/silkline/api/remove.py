"""Removes a job: its rows, and its files on this machine."""

from __future__ import annotations

import logging

from silkline import warc_files
from silkline.config import Settings
from silkline.model.database import Database
from silkline.store import job_removal

log = logging.getLogger("silkline.api")


def remove(database: Database, settings: Settings, id: str) -> None:
    removed = job_removal.delete(database, id)
    try:
        for each in removed:
            warc_files.remove(settings.data, settings.logs, each)
    except OSError as error:
        log.warning("job %s was removed, but not all of its files: %s", id, error, extra={"job": id})

"""Runs a job of any kind in the test's own process, on a database of its own."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from silkline.config import Settings
from silkline.model.job import Job, NewJob
from silkline.model.ledger import Url
from silkline.runner.inline import run_here, run_queued
from silkline.store import results, urls
from silkline.store.opening import open_database
from silkline.store.results import Result


class Inline:
    """A database, and the jobs that were run on it."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(data=folder)
        self.database = open_database(self.settings.database)
        self.job: Job

    def change_settings(self, **values: Any) -> None:
        """Give the next jobs other settings."""
        self.settings = replace(self.settings, **values)

    def run(self, kind: str, **payload: Any) -> list[Result]:
        """Run a job to its end; its results."""
        self.job = run_here(self.database, self.settings, NewJob(kind, payload), logging.getLogger("test"))
        return list(results.every(self.database, self.job.id))

    def go_on(self) -> list[Result]:
        """Run the job again, which has been queued; its results."""
        self.job = run_queued(self.database, self.settings, self.job.id, logging.getLogger("test"))
        return list(results.every(self.database, self.job.id))

    def ledger(self) -> list[Url]:
        return urls.page(self.database, self.job.id, wanted=10_000)

    def assert_failed(self, *words: str) -> None:
        assert self.job.status == "failed", self.job
        for word in words:
            assert word in (self.job.error_message or ""), self.job.error_message

    def close(self) -> None:
        self.database.close()

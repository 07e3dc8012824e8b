"""No process of ours claims a job that an external worker runs, however it got the id of the job."""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from silkline.config import Settings
from silkline.errors import Refused
from silkline.model.database import Database
from silkline.model.job import NewJob, Status
from silkline.runner.inline import run_queued
from silkline.service.foreground_run import ForegroundRun
from silkline.store import jobs
from silkline.store.opening import open_database


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path)


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    with closing(open_database(settings.database)) as database:
        yield database


def in_the_foreground(database: Database, settings: Settings, id: str) -> None:
    loop: Any = SimpleNamespace(database=database, identity=SimpleNamespace(id="worker-1", host="a-host"))
    ForegroundRun(settings, id).claim(loop, 1)


def inline(database: Database, settings: Settings, id: str) -> None:
    run_queued(database, settings, id, logging.getLogger("test"))


@pytest.mark.parametrize("run", [in_the_foreground, inline])
def test_it_is_refused_before_it_is_claimed(
    database: Database, settings: Settings, run: Callable[[Database, Settings, str], None]
) -> None:
    url = "https://example.com/"
    job = jobs.enqueue(database, NewJob("extension", {"url": url}, request_url=url))[0]
    with pytest.raises(Refused, match="An external worker runs jobs of the kind extension"):
        run(database, settings, job.id)
    now = jobs.get(database, job.id)
    assert (now.status, now.attempt, now.retry_count, now.crash_count) == (Status.QUEUED, 0, 0, 0)

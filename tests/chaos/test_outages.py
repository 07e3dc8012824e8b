"""The database goes away, the disk fills up: jobs wait, nothing is lost, nobody is rescued who lives."""

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.model.job import NewJob, Status
from silkline.store import jobs, results, urls
from tests.chaos.test_kills import all_done_once, end_and_count
from tests.conftest import ROOT
from tests.crawl.harness import SyntheticWeb, closing
from tests.support.postgres import PostgresServer
from tests.support.small_disk import NAMESPACE, NONE, can_mount, run_in_namespace, small_disk
from tests.support.supervisors import ENDLESS, STALE_LATER, Yard, eventually, yard


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that keeps what it has confirmed, whatever happens to it."""
    server = PostgresServer(fsync=True)
    yield server
    server.remove()


@pytest.fixture
def postgres_yard(own_postgres: PostgresServer, tmp_path: Path) -> Iterator[Yard]:
    with yard(own_postgres.create_database(), tmp_path) as place:
        yield place


def test_postgres_is_restarted_under_load(
    postgres_yard: Yard, own_postgres: PostgresServer, long_chaos: bool, figure: list[str]
) -> None:
    restarts = 20 if long_chaos else 3
    ids = postgres_yard.add("work", many=4, **ENDLESS)
    postgres_yard.start("one")
    postgres_yard.start("two")
    for number in range(restarts):
        before = done(postgres_yard, ids)
        eventually("work goes on", lambda b=before: done(postgres_yard, ids) > b + 40)
        own_postgres.restart("immediate" if number % 2 else "fast")
    end_and_count(postgres_yard, ids)
    assert [postgres_yard.job(id).crash_count for id in ids] == [0] * 4
    figure.append(f"{restarts} restarts: 0 lost, 0 rescued")


def done(place: Yard, ids: list[str]) -> int:
    return sum(urls.counts(place.database, id).done for id in ids)


def test_postgres_is_away_for_three_times_the_stale_limit(
    postgres_yard: Yard, own_postgres: PostgresServer, figure: list[str]
) -> None:
    """Everybody fences itself; on its return nobody is taken for dead."""
    ids = postgres_yard.add("work", many=4, **ENDLESS)
    postgres_yard.start("one", **STALE_LATER)
    postgres_yard.start("two", **STALE_LATER)
    for id in ids:
        postgres_yard.wait_for_results(id)
    own_postgres.stop("immediate")
    time.sleep(24)  # the outage itself: three times the stale limit
    own_postgres.start()
    end_and_count(postgres_yard, ids)
    assert [postgres_yard.job(id).crash_count for id in ids] == [0] * 4
    assert any("another supervisor may soon start" in each.log for each in postgres_yard.supervisors)
    figure.append("away for 24 s, stale limit 8 s: 0 lost, 0 rescued, every supervisor fenced itself")


def test_the_disk_fills_up_while_recording_and_logging(tmp_path: Path, figure: list[str]) -> None:
    """The job waits, with a message; when there is space again it goes on by itself and the database is whole."""
    if can_mount(tmp_path):
        with small_disk(tmp_path / "disk", mebibytes=64) as disk:
            fill_up_and_go_on(disk)
    elif can_mount(tmp_path, inside=NAMESPACE):
        run_in_namespace(f"{__file__}::{FULL_DISK}", ROOT, tmp_path)
    else:
        pytest.skip(NONE)
    figure.append("waited with a message, went on by itself, integrity ok")


FULL_DISK = test_the_disk_fills_up_while_recording_and_logging.__name__


@pytest.mark.parametrize("fetchers", [1, 2])
def test_the_disk_fills_up_while_answers_are_archived(tmp_path: Path, fetchers: int) -> None:
    """The database has space, the data directory has not: neither the leader nor its fetchers count it as a crash."""
    if can_mount(tmp_path):
        with small_disk(tmp_path / "disk", mebibytes=8) as disk:
            fill_up_and_archive(disk, tmp_path, fetchers)
    elif can_mount(tmp_path, inside=NAMESPACE):
        run_in_namespace(f"{__file__}::{FULL_ARCHIVE}[{fetchers}]", ROOT, tmp_path)
    else:
        pytest.skip(NONE)


FULL_ARCHIVE = test_the_disk_fills_up_while_answers_are_archived.__name__


def fill_up_and_archive(disk: Path, roomy: Path, fetchers: int) -> None:
    with (
        closing(SyntheticWeb(hosts=6, pages=20)) as web,
        yard(f"sqlite:///{roomy / 'silkline.db'}", disk) as place,
    ):
        place.ready(place.start(disk_free_min=0, fetchers=fetchers))
        filler = disk / "filler"
        fill(filler, leave=40_000)
        payload = {"url": web.start, "scope": "any", "speed": "max", "allow_private": ["127.0.0.0/8"], "warc": True}
        job, _ = jobs.enqueue(place.database, NewJob("site", payload, max_retries=0))
        eventually("the job waits for space", lambda: reason(place, job.id) == "disk_full")
        filler.unlink()
        ended = place.wait_for(job.id, Status.COMPLETED, Status.FAILED)
        assert (ended.status, ended.crash_count, ended.retry_count) == (Status.COMPLETED, 0, 0), ended
        assert {each.final_url for each in results.every(place.database, job.id)} == web.reachable()


def fill_up_and_go_on(disk: Path) -> None:
    with yard(f"sqlite:///{disk / 'silkline.db'}", disk) as place:
        supervisor = place.ready(place.start())
        filler = disk / "filler"
        fill(filler, leave=1 << 20)
        (id,) = place.add("work", steps=150, seconds=0.001, text="x" * 20_000)
        (loud,) = place.add("flood", size=4 << 20)
        eventually(
            "the job waits for space", lambda: "no space left" in supervisor.log or "disk_full" in reason(place, id)
        )
        filler.unlink()
        place.wait_for_end([id, loud])
        all_done_once(place, [id], 150)
        assert place.job(id).crash_count == 0
        assert place.job(loud).status is Status.COMPLETED
        with contextlib.closing(sqlite3.connect(disk / "silkline.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def reason(place: Yard, id: str) -> str:
    return place.job(id).exit_reason or ""


def fill(path: Path, *, leave: int) -> None:
    with path.open("wb") as file:
        while (free := shutil.disk_usage(path.parent).free) > leave:
            file.write(os.urandom(min(1 << 20, free - leave)))
            file.flush()


def test_too_little_disk_space_starts_no_job(yard_on_sqlite: Yard) -> None:
    supervisor = yard_on_sqlite.start(disk_free_min=1 << 60)
    (id,) = yard_on_sqlite.add("nothing")
    eventually("it says why", lambda: "no job starts until" in supervisor.log)
    assert yard_on_sqlite.job(id).status is Status.QUEUED
    assert jobs.counts(yard_on_sqlite.database)[Status.RUNNING] == 0


@pytest.fixture
def yard_on_sqlite(tmp_path: Path) -> Iterator[Yard]:
    with yard(f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path) as place:
        yield place

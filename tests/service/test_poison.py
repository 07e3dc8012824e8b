"""No page ends a crawl: whatever dies, stalls or fills its memory on an input costs that input and nothing else."""

from __future__ import annotations

import os
import signal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from silkline.crawl.host_owners import HostOwners
from silkline.model.job import Job, NewJob, Status
from silkline.model.ledger import Url
from silkline.reading_marks import LEADER, Mark, ReadingMarks
from silkline.store import blames, jobs, results, urls
from tests.conftest import DATABASES
from tests.support.effort import LONG
from tests.support.poisoned import ENVIRONMENT, PoisonedWeb, poisoned_web
from tests.support.supervisors import STALE, Yard, eventually

SHAPES = {"1x0": (1, 0), "2x0": (2, 0), "1x1": (1, 1)}
# Each shape and each database; with SILKLINE_CHAOS=long each shape on each database.
PLACES = list(product(DATABASES, SHAPES)) if LONG else [("sqlite", "1x0"), ("postgres", "2x0"), ("sqlite", "1x1")]
# Small, so that a test does not take long: no good page here needs a hundredth of it.
LIMITS: dict[str, Any] = {"read_seconds": 2.0, "read_memory": 64 << 20, "memory_limit": 900 << 20}
WAYS = {"loop": "time: ", "memory": "memory: ", "crash": "signal 11", "error": "SystemError"}


def crawl(yard: Yard, web: PoisonedWeb, **spec: Any) -> str:
    asked = {"urls": web.seeds, "scope": "host", "speed": "max", "allow_private": ["127.0.0.0/8"]}
    job, _ = jobs.enqueue(yard.database, NewJob("site", {**asked, "fetchers": 1, **spec}, max_retries=0))
    return job.id


def ledger(yard: Yard, id: str) -> dict[str, Url]:
    return {row.url: row for row in urls.page(yard.database, id, wanted=10_000)}


def finished(yard: Yard, id: str) -> Job:
    [job] = yard.wait_for_end([id])
    assert (job.status, job.crash_count) == (Status.COMPLETED, 0), f"{job}\n{yard.lines(id)}"
    return job


def assert_only_poison_is_missing(yard: Yard, id: str, web: PoisonedWeb) -> dict[str, Url]:
    rows = ledger(yard, id)
    assert {url for url in web.good if rows[url].state == "done"} == web.good
    ends = {url: (rows[url].state, rows[url].reason) for url in web.bad}
    assert ends == dict.fromkeys(web.bad, ("failed", "reader_died"))
    assert yard.adds_up(id)
    return rows


@pytest.mark.parametrize(("database_url", "shape"), PLACES, indirect=["database_url"])
def test_each_poison_gets_its_reason_and_every_good_page_is_stored(
    yard: Yard, shape: str, record_property: Any
) -> None:
    poison = {"127.0.0.2": ["loop"], "127.0.0.3": ["memory"], "127.0.0.4": ["crash"], "127.0.0.5": ["crash"]}
    with poisoned_web(poison, robots={"127.0.0.6": "loop"}) as web:
        yard.start(environment=ENVIRONMENT, **LIMITS)
        fetchers, parsers = SHAPES[shape]
        id = crawl(yard, web, fetchers=fetchers, parsers=parsers)
        job = finished(yard, id)
        rows = assert_only_poison_is_missing(yard, id, web)
        said = {what: rows[url].detail or "" for url, what in web.bad.items()}
        assert {what: WAYS[what] in said[what] for what in said} == dict.fromkeys(said, True), said
        closed = rows[web.server.url("/", "127.0.0.6")]
        assert (closed.state, closed.reason) == ("skipped", "robots_unavailable")
        assert "reader_died" in (closed.detail or "")
        assert job.attempt <= 4, "three blamed inputs, and everything is read in isolation"
        record_property("figure", f"{len(web.good)} good pages, {len(web.bad) + 1} bombs: {job.attempt} attempts")


def test_poison_in_another_process_than_the_runner_costs_no_attempt(yard: Yard) -> None:
    with poisoned_web({}, hosts=12) as web:
        owner_of = HostOwners(2).owner_of
        theirs = [host for host in web.server.addresses if owner_of(f"{host}:{web.server.port}") == 1]
        web.poison.update(zip(theirs, (["loop"], ["memory"], ["crash"]), strict=False))
        yard.start(environment=ENVIRONMENT, **LIMITS)
        id = crawl(yard, web, fetchers=2)
        assert finished(yard, id).attempt == 1, yard.lines(id)
        assert_only_poison_is_missing(yard, id, web)


@pytest.mark.parametrize(("fetchers", "parsers"), [(1, 0), (1, 1)])
def test_an_input_that_takes_too_much_memory_costs_no_attempt(yard: Yard, fetchers: int, parsers: int) -> None:
    """It is given up before the job needs the memory of the machine, and read again in isolation."""
    poison = {host: ["memory"] for host in ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")}
    with poisoned_web(poison, robots={"127.0.0.6": "memory"}) as web:
        yard.start(environment=ENVIRONMENT, **LIMITS)
        id = crawl(yard, web, fetchers=fetchers, parsers=parsers)
        assert finished(yard, id).attempt == 1, yard.lines(id)
        rows = assert_only_poison_is_missing(yard, id, web)
        assert "reader_died" in (rows[web.server.url("/", "127.0.0.6")].detail or "")


@pytest.mark.parametrize("fetchers", [1, 2])
def test_a_parser_that_forges_readings_is_replaced_and_costs_no_page(yard: Yard, fetchers: int) -> None:
    with poisoned_web({"127.0.0.2": ["forge"]}, hosts=4) as web:
        yard.start(environment=ENVIRONMENT, **LIMITS)
        id = crawl(yard, web, fetchers=fetchers, parsers=1)
        assert finished(yard, id).attempt == 1, yard.lines(id)
        rows = ledger(yard, id)
        assert {rows[url].state for url in (*web.good, *web.bad)} == {"done"}
        assert {each.data["title"] for each in results.every(yard.database, id)} == {"A page"}


@pytest.mark.parametrize(
    ("database_url", "bombs"),
    [("sqlite", 1000 if LONG else 300), ("postgres", 1000 if LONG else 100)],
    indirect=["database_url"],
)
def test_a_thousand_bombs_on_one_host_cost_a_few_attempts(yard: Yard, bombs: int, record_property: Any) -> None:
    with poisoned_web({"127.0.0.2": ["crash"] * bombs}, hosts=2) as web:
        yard.start(environment=ENVIRONMENT, **LIMITS)
        id = crawl(yard, web)
        job = finished(yard, id)
        assert_only_poison_is_missing(yard, id, web)
        assert job.attempt <= 4
        record_property("figure", f"{bombs} bombs: {job.attempt} attempts")


def test_an_error_that_nobody_expects_ends_one_page(yard: Yard) -> None:
    with poisoned_web({"127.0.0.1": ["error"]}, hosts=1) as web:
        yard.start(environment=ENVIRONMENT, **LIMITS)
        id = crawl(yard, web)
        assert finished(yard, id).attempt == 1
        [bad] = web.bad
        assert ledger(yard, id)[bad].reason == "parse_failed"


def marked(yard: Yard) -> Mark | None:
    """What the runner of the one attempt is reading."""
    for path in (yard.folder / "data" / "marks").glob("*.marks"):
        if not path.stat().st_size:  # it is being made
            continue
        marks = ReadingMarks.open(path)
        try:
            mark = marks.mark_of(LEADER)
        finally:
            marks.close()
        if mark is not None and "/poison/" in mark.name:
            return mark
    return None


@pytest.mark.parametrize("whom", ["runner", "everything"])
def test_an_innocent_page_whose_reader_was_killed_is_read_in_isolation_and_stored(
    yard: Yard, tmp_path: Path, whom: str
) -> None:
    released = tmp_path / "released"
    with poisoned_web({"127.0.0.1": [f"once:{released}"]}, hosts=1) as web:
        limits = {**LIMITS, "read_seconds": 300.0, "heartbeat_interval": 1.0} | (STALE if whom == "everything" else {})
        supervisor = yard.ready(yard.start(environment=ENVIRONMENT, **limits))
        id = crawl(yard, web)
        mark = eventually("the runner reads the page", lambda: marked(yard))
        if whom == "everything":
            supervisor.kill()
        else:
            os.kill(mark.pid, signal.SIGKILL)
        released.touch()
        if whom == "everything":
            yard.start(environment=ENVIRONMENT, **limits)
        finished(yard, id)
        [innocent] = web.bad
        assert ledger(yard, id)[innocent].state == "done"
        assert blames.listed(yard.database, id) == [(innocent, 1)]


def test_a_single_page_that_cannot_be_read_has_a_result_that_says_so(yard: Yard) -> None:
    """As `POST /v1/fetch` asks for it."""
    with poisoned_web({"127.0.0.1": ["loop"], "127.0.0.2": ["memory"]}, hosts=2) as web:
        yard.start(environment=ENVIRONMENT, **LIMITS)
        payload = {"urls": [*web.bad, *web.good], "allow_private": ["127.0.0.0/8"], "speed": "max"}
        job, _ = jobs.enqueue(yard.database, NewJob("page", payload, max_retries=0))
        finished(yard, job.id)
        found = {each.original_url: each for each in results.every(yard.database, job.id)}
        assert {url for url in found if found[url].success} == web.good
        assert {found[url].metadata["error"] for url in web.bad} == {"reader_died"}


def test_a_supervisor_goes_on_when_the_file_of_the_marks_is_cut(yard: Yard, tmp_path: Path) -> None:
    """As a process of the attempt could do it that a page has taken over. Whoever has the file mapped may end."""
    released = tmp_path / "released"
    with poisoned_web({"127.0.0.1": [f"once:{released}"]}, hosts=1) as web:
        limits = {**LIMITS, "read_seconds": 300.0, "heartbeat_interval": 1.0}
        supervisor = yard.ready(yard.start(environment=ENVIRONMENT, **limits))
        id = crawl(yard, web)
        eventually("the runner reads the page", lambda: marked(yard))
        for path in (yard.folder / "data" / "marks").glob("*.marks"):
            os.truncate(path, 0)
        # It looks at the marks several times between two heartbeats.
        before, ended = yard.job(id).heartbeat_seq, supervisor.process.poll
        eventually("it goes on, or ends", lambda: yard.job(id).heartbeat_seq > before + 1 or ended() is not None)
        assert ended() is None, supervisor.log
        released.touch()
        yard.wait_for_end([id])
        assert supervisor.process.poll() is None, supervisor.log

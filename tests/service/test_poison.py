"""No page ends a crawl: whatever dies, stalls or fills its memory on an input costs that input and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from silkline.model.job import Job, NewJob, Status
from silkline.store import jobs, urls
from tests.support.poisoned import ENVIRONMENT, PoisonedWeb, poisoned_web
from tests.support.supervisors import Yard

SHAPES = {"1x0": (1, 0), "2x0": (2, 0), "1x1": (1, 1)}
# Small, so that a test does not take long: no good page here needs a hundredth of it.
LIMITS: dict[str, Any] = {"read_seconds": 2.0, "read_memory": 256 << 20, "memory_limit": 700 << 20}


def crawl(yard: Yard, web: PoisonedWeb, **spec: Any) -> str:
    payload = {
        "urls": web.seeds,
        "scope": "host",
        "speed": "max",
        "allow_private": ["127.0.0.0/8"],
        "parsers": 0,
        **spec,
    }
    job, _ = jobs.enqueue(yard.database, NewJob("site", payload, max_retries=0))
    return job.id


def ledger(yard: Yard, id: str) -> dict[str, urls.Url]:
    return {row.url: row for row in urls.page(yard.database, id, wanted=10_000)}


def finished(yard: Yard, id: str) -> Job:
    [job] = yard.wait_for_end([id])
    assert (job.status, job.crash_count) == (Status.COMPLETED, 0), f"{job}\n{yard.lines(id)}"
    return job


@pytest.mark.parametrize("shape", SHAPES)
def test_each_poison_gets_its_reason_and_every_good_page_is_stored(
    yard: Yard, shape: str, record_property: Any
) -> None:
    poison = {"127.0.0.2": ["loop"], "127.0.0.3": ["memory"], "127.0.0.4": ["crash"], "127.0.0.5": ["loop"]}
    with poisoned_web(poison, robots={"127.0.0.6": "loop"}) as web:
        yard.start(environment=ENVIRONMENT, **LIMITS)
        fetchers, parsers = SHAPES[shape]
        id = crawl(yard, web, fetchers=fetchers, parsers=parsers)
        job = finished(yard, id)
        rows = ledger(yard, id)
        assert {url for url in web.good if rows[url].state == "done"} == web.good
        assert {url: (rows[url].state, rows[url].reason) for url in web.bad} == dict.fromkeys(
            web.bad, ("failed", "reader_died")
        )
        limits = {"loop": "time: ", "memory": "memory: ", "crash": "signal 11"}
        assert all(limits[what] in (rows[url].detail or "") for url, what in web.bad.items()), rows
        closed = rows[web.server.url("/", "127.0.0.6")]
        assert (closed.state, closed.reason) == ("skipped", "robots_unavailable")
        assert "reader_died" in (closed.detail or "")
        assert job.attempt <= 4, "three blamed inputs, and everything is read in isolation"
        assert yard.adds_up(id)
        record_property(
            "figure", f"{shape}: {len(web.good)} good pages, {len(web.bad) + 1} bombs, {job.attempt} attempts"
        )

"""The statements that run all the time find their rows by an index, however many jobs wait."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from silkline.model.job import NewJob
from silkline.store import jobs
from silkline.store.database import Database, open_database
from silkline.store.statements import parameters_of, statement

OFTEN = {
    "jobs.claim": {"crawl_jobs_claim", "crawl_jobs_live"},
    "jobs.next_due": {"crawl_jobs_due"},
    "jobs.heartbeat": {"crawl_jobs_live"},
    "jobs.live_with_key": {"crawl_jobs_dedupe"},
    "jobs.page_by_status": {"crawl_jobs_status"},
    "jobs.finished_before": {"crawl_jobs_finished"},
    "logs.page": {"job_logs_job"},
    "results.cached": {"crawl_results_original", "crawl_results_final"},
}


def plan(database: Any, name: str) -> str:
    values = dict.fromkeys(parameters_of(name))
    with database._connection() as connection:
        rows = connection.execute("EXPLAIN QUERY PLAN " + statement(name, "sqlite"), values)
        return "\n".join(row[3] for row in rows)


@pytest.mark.parametrize("name", OFTEN)
def test_sqlite_plans_use_the_index(sqlite_database: Database, name: str) -> None:
    steps = plan(sqlite_database, name)
    for index in OFTEN[name]:
        assert f"INDEX {index}" in steps
    assert "SCAN crawl_jobs\n" not in steps + "\n"


def test_a_sqlite_claim_seeks_in_the_partial_index_and_sorts_no_queue(sqlite_database: Database) -> None:
    steps = plan(sqlite_database, "jobs.claim")
    for seek in (
        "COVERING INDEX crawl_jobs_claim (worker=?)",
        "COVERING INDEX crawl_jobs_claim (worker=? AND tenant>?)",
        "COVERING INDEX crawl_jobs_claim (worker=? AND tenant=? AND priority>?)",
        "COVERING INDEX crawl_jobs_claim (worker=? AND tenant=? AND priority=? AND run_at<?)",
    ):
        assert seek in steps
    assert "crawl_jobs_status" not in steps
    assert "SEARCH crawl_jobs USING INTEGER PRIMARY KEY (rowid=?)" in steps


def full(database: Database) -> None:
    later = database.now() + timedelta(days=1)
    jobs.enqueue_many(database, [NewJob("page", {}, tenant=f"t{number % 100}") for number in range(5_000)])
    jobs.enqueue_many(database, [NewJob("site", {}, run_at=later)] * 5_000)


@pytest.fixture
def fresh_postgres(postgres_url: str) -> Iterator[Database]:
    """A database whose statistics no other test has touched."""
    opened = open_database(postgres_url)
    yield opened
    opened.close()


def test_a_postgres_claim_reads_as_many_rows_as_there_are_lanes(fresh_postgres: Any) -> None:
    database = fresh_postgres
    full(database)
    values = {"now": database.now(), "worker_id": "w", "host": "h", "kinds": '["page","site"]', "wanted": 2}
    for analysed in (False, True):
        with database.transaction() as transaction:
            if analysed:
                transaction.script("ANALYZE crawl_jobs")
            explain = "EXPLAIN (ANALYZE, FORMAT JSON) " + statement("jobs.claim", "postgres")
            (row,) = transaction.connection.execute(explain, values).fetchall()
        nodes = list(every_node(json.loads(row["QUERY PLAN"])[0]["Plan"]))
        assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
        most = max(node["Actual Rows"] * node["Actual Loops"] for node in nodes)
        assert most < 500, "far fewer than the 10,000 jobs that wait"


def every_node(node: dict[str, Any]) -> Any:
    yield node
    for child in node.get("Plans", ()):
        yield from every_node(child)


def test_a_full_queue_still_gives_the_right_job(database: Database) -> None:
    full(database)
    urgent = jobs.enqueue_many(database, [NewJob("page", {}, tenant="t50", priority=1)])
    assert [job.id for job in jobs.claim(database, "w1", "h", ["page", "site"], 1)] == urgent
    assert len({job.tenant for job in jobs.claim(database, "w1", "h", ["page", "site"], 99)}) == 99

"""The statements that run all the time find their rows by an index, however many jobs wait."""

import itertools
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from psycopg import sql

from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.model.ledger import Checkpoint
from silkline.store import jobs, logs, urls
from silkline.store.statements import parameters_of, statement
from tests.store.given import result, running, settled, url

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
LISTS = {
    "jobs.page": "sqlite_autoindex_crawl_jobs_1",
    "jobs.page_by_status": "crawl_jobs_status",
    "jobs.page_by_kind": "sqlite_autoindex_crawl_jobs_1",
    "jobs.search": "sqlite_autoindex_crawl_jobs_1",
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
        "COVERING INDEX crawl_jobs_claim (kind=?)",
        "COVERING INDEX crawl_jobs_claim (kind=? AND tenant>?)",
        "COVERING INDEX crawl_jobs_claim (kind=? AND tenant=? AND priority>?)",
        "COVERING INDEX crawl_jobs_claim (kind=? AND tenant=? AND priority=? AND run_at<?)",
    ):
        assert seek in steps
    assert "crawl_jobs_status" not in steps
    assert "SEARCH crawl_jobs USING INTEGER PRIMARY KEY (rowid=?)" in steps


@pytest.mark.parametrize("name", LISTS)
def test_sqlite_reads_lists_in_their_order_and_sorts_nothing(sqlite_database: Database, name: str) -> None:
    assert re.fullmatch(rf"SEARCH crawl_jobs USING (COVERING )?INDEX {LISTS[name]} \(.*\)", plan(sqlite_database, name))


@pytest.mark.parametrize("name", ["logs.page", "logs.search", "results.page"])
def test_sqlite_goes_on_where_the_page_before_ended(sqlite_database: Database, name: str) -> None:
    assert re.search(r"\(job_id=\? AND (row)?id>\?\)", plan(sqlite_database, name))


PAGE_LISTS = {
    "pages.by_title": "crawl_pages_title",
    "pages.by_title_down": "crawl_pages_title",
    "pages.by_size": "crawl_pages_bytes",
    "pages.by_size_down": "crawl_pages_bytes",
    "pages.by_time": "crawl_pages_seconds",
    "pages.by_time_down": "crawl_pages_seconds",
}


@pytest.mark.parametrize("name", PAGE_LISTS)
def test_sqlite_reads_sorted_pages_by_their_index(sqlite_database: Database, name: str) -> None:
    steps = plan(sqlite_database, name)
    job, pages = r"SEARCH s USING PRIMARY KEY \(job_id=\?\)", rf"SEARCH p USING INDEX {PAGE_LISTS[name]}"
    assert re.match(rf"{job}\n{pages} \(job_id=\? AND \((\w+),url_id\)[<>]\(\?,\?\)\)", steps)
    assert "TEMP B-TREE" not in steps


def full(database: Database) -> None:
    later = database.now() + timedelta(days=1)
    jobs.enqueue_many(database, [NewJob("page", {}, tenant=f"t{number % 100}") for number in range(5_000)])
    jobs.enqueue_many(database, [NewJob("site", {}, run_at=later)] * 5_000)


TABLES = ("crawl_jobs", "crawl_ledger", "crawl_results", "crawl_pages", "job_logs")


def analyse_only_when_told(database: Database) -> None:
    """The statistics are what the test says, whenever the server's own housekeeping comes by."""
    with database.transaction() as transaction:
        for table in TABLES:
            transaction.script(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")


def analyse(database: Database) -> None:
    with database.transaction() as transaction:
        for table in TABLES:
            transaction.script(f"ANALYZE {table}")


def postgres_nodes(database: Any, name: str, **values: Any) -> list[dict[str, Any]]:
    """Run a statement with the generic plan, as our connections do, and give the steps that were taken."""
    names = list(values)
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement(name, "postgres"))
    given = sql.SQL(", ").join(map(sql.Literal, values.values()))
    with database.transaction() as transaction:
        transaction.script("PREPARE explained AS " + text.replace("%%", "%"))
        explain = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained ({})").format(given)
        (row,) = transaction.connection.execute(explain).fetchall()
        transaction.script("DEALLOCATE explained")
    return list(every_node(json.loads(row["QUERY PLAN"])[0]["Plan"]))


def rows_read(nodes: list[dict[str, Any]]) -> int:
    """The most rows that any step looked at."""
    return max(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) for node in nodes)


def test_a_postgres_claim_reads_as_many_rows_as_there_are_lanes(fresh_postgres: Database) -> None:
    database = fresh_postgres
    analyse_only_when_told(database)
    full(database)
    values = {"now": database.now(), "worker_id": "w", "host": "h", "kinds": '["page","site"]', "wanted": 2}
    for analysed in (False, True):
        if analysed:
            analyse(database)
        nodes = postgres_nodes(database, "jobs.claim", **values)
        assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
        assert rows_read(nodes) < 500, "far fewer than the 10,000 jobs that wait"


def test_postgres_lists_read_what_they_show_whatever_the_statistics_say(fresh_postgres: Database) -> None:
    database = fresh_postgres
    analyse_only_when_told(database)
    new = [NewJob("page", {}, f"https://example.com/{number}", paused=True) for number in range(10_000)]
    jobs.enqueue_many(database, new)
    newest = {"before": jobs.LAST_ID, "wanted": 51}
    for analysed in (False, True):
        if analysed:
            analyse(database)
        for name, values in (
            ("jobs.page", {}),
            ("jobs.page_by_status", {"status": "paused", "kind": None}),
            ("jobs.page_by_status", {"status": "paused", "kind": "page"}),
            ("jobs.page_by_status", {"status": "failed", "kind": None}),
            ("jobs.page_by_kind", {"kind": "page"}),
            ("jobs.search", {"text": "example.com/9", "status": None, "kind": None}),
            ("jobs.search", {"text": "example.com/9", "status": "paused", "kind": "page"}),
        ):
            nodes = postgres_nodes(database, name, **newest, **values)
            assert rows_read(nodes) <= 51, (name, values, analysed)
            assert not [node for node in nodes if "Sort" in node["Node Type"]], (name, values, analysed)


def crawled(database: Database, pages: int) -> str:
    """A job with that many pages, every other one done, and as many lines of its log."""
    job, ids, now = running(database), range(1, pages + 1), database.now()
    done = [settled(id) for id in ids[::2]]
    urls.record(database, job, Checkpoint([url(id) for id in ids], done, [result(id) for id in ids]))
    logs.append(database, [logs.NewLine(job.id, 1, "info", f"page {id}", now) for id in ids])
    return job.id


def test_a_small_and_a_large_postgres_crawl_read_what_they_show(fresh_postgres: Database) -> None:
    """Most rows of every table belong to one job: the statistics say so, and must not lead astray."""
    database = fresh_postgres
    analyse_only_when_told(database)
    both = [crawled(database, 40), crawled(database, 10_000)]
    first = {"after": 0, "wanted": 20}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("logs.page", first),
        ("logs.search", {**first, "levels": ",info,", "text": "page"}),
        ("logs.tail", {"wanted": 20}),
        ("results.page", first),
        ("urls.page", first),
        ("urls.page_by_state", {**first, "state": "done"}),
        ("urls.page_by_reason", {**first, "state": "done", "reason": None}),
        ("urls.queued", first),
        ("urls.queued_own", first),
        ("pages.by_found", {"id": 0, "wanted": 20}),
        ("pages.by_newest", {"id": 2**40, "wanted": 20}),
        ("pages.in_state", {"id": 0, "upto": 40, "state": "done", "wanted": 20}),
        ("pages.by_title", {"place": "", "id": 0, "wanted": 20}),
        ("pages.by_title_down", {"place": "\U0010ffff", "id": 2**40, "wanted": 20}),
        *((f"pages.by_{name}", {"place": -2, "id": 0, "wanted": 20}) for name in ("size", "time")),
        *((f"pages.by_{name}_down", {"place": 2**40, "id": 2**40, "wanted": 20}) for name in ("size", "time")),
    ]
    for analysed in (False, True):
        if analysed:
            analyse(database)
        for (name, values), job_id in itertools.product(asked, both):
            nodes = postgres_nodes(database, name, job_id=job_id, **values)
            assert rows_read(nodes) <= 40, (name, analysed, job_id == both[0])


def every_node(node: dict[str, Any]) -> Any:
    yield node
    for child in node.get("Plans", ()):
        yield from every_node(child)


def test_a_full_queue_still_gives_the_right_job(database: Database) -> None:
    full(database)
    urgent = jobs.enqueue_many(database, [NewJob("page", {}, tenant="t50", priority=1)])
    assert [job.id for job in jobs.claim(database, "w1", "h", ["page", "site"], 1)] == urgent
    assert len({job.tenant for job in jobs.claim(database, "w1", "h", ["page", "site"], 99)}) == 99

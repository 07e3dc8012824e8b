"""Everything works behind PgBouncer in transaction mode, with fewer server connections than clients."""

import re
from collections import Counter
from pathlib import Path

import psycopg

from silkline.model.job import LIVE, NewJob, Status, Verb
from silkline.store import jobs, results
from silkline.store.opening import open_database
from tests.crawl.harness import SyntheticWeb, closing
from tests.support.pgbouncer import PgBouncer
from tests.support.supervisors import eventually, yard

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SHARDS = 3


def most_connections() -> tuple[int, int]:
    """For a worker and for each running job, as the docs say."""
    found = re.search(
        r"A worker uses at most (\d+) connections, and each running job (\d+) more", OPERATIONS.read_text()
    )
    assert found is not None
    return int(found[1]), int(found[2])


def test_a_crawl_in_shards_behind_a_pooler(pgbouncer: PgBouncer, tmp_path: Path) -> None:
    with yard(pgbouncer.url, tmp_path) as place, closing(SyntheticWeb(hosts=6, pages=8)) as web:
        payload = {"url": web.start, "speed": "fast", "delay": 0.02, "allow_private": ["127.0.0.0/8"], "scope": "any"}
        new = NewJob("site", {**payload, "shards": SHARDS, "content": "none"}, request_url=web.start)
        id = jobs.enqueue(place.database, new)[0].id
        supervisor = place.ready(place.start(slots=SHARDS))
        eventually("pages are stored", lambda: results.count(place.database, id))
        jobs.wish(place.database, id, Verb.PAUSE)
        place.wait_for(id, Status.PAUSED)
        jobs.wish(place.database, id, Verb.RESUME)
        connections = 0
        while place.job(id).status in LIVE:
            connections = max(connections, pgbouncer.clients())
        assert place.job(id).status is Status.COMPLETED
        stored = Counter(result.final_url for result in results.every(place.database, id))
        assert stored == dict.fromkeys(web.reachable(), 1)
        worker, each = most_connections()
        assert SHARDS < connections - 1 <= worker + SHARDS * each, "one is that of this test"
        assert supervisor.terminate() == 0
        assert "database notifications are not available" in supervisor.log
        assert "Traceback" not in supervisor.log


def test_nothing_is_prepared_or_set_for_a_session(pgbouncer: PgBouncer) -> None:
    database = open_database(pgbouncer.url)
    try:
        for number in range(20):  # more often than psycopg needs to prepare a statement by itself
            new = [NewJob("page", {"url": f"https://{number}.example/"})] * 3
            assert len(jobs.enqueue_many(database, new)) == 3
            with database.transaction() as transaction:
                assert transaction.rows("jobs.counts")
        with psycopg.connect(pgbouncer.url, autocommit=True, prepare_threshold=None) as connection:
            assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            changed = connection.execute(
                "SELECT name FROM pg_settings WHERE source = 'session' AND name IN "
                "('jit', 'plan_cache_mode', 'enable_incremental_sort')"
            ).fetchall()
        assert changed == []
    finally:
        database.close()

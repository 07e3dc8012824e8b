"""Everything works behind PgBouncer in transaction mode, with less server connections than clients."""

from collections import Counter
from pathlib import Path

import psycopg

from silkline.model.job import NewJob, Status, Verb
from silkline.store import jobs, results
from silkline.store.opening import open_database
from tests.crawl.harness import SyntheticWeb, closing
from tests.support.supervisors import eventually, yard


def test_a_crawl_in_shards_behind_a_pooler(pooled_url: str, tmp_path: Path) -> None:
    with yard(pooled_url, tmp_path) as place, closing(SyntheticWeb(hosts=6, pages=8)) as web:
        payload = {"url": web.start, "speed": "fast", "delay": 0.02, "allow_private": ["127.0.0.0/8"], "scope": "any"}
        new = NewJob("site", {**payload, "shards": 3, "content": "none"}, request_url=web.start)
        id = jobs.enqueue(place.database, new)[0].id
        supervisor = place.ready(place.start(slots=4))
        eventually("pages are stored", lambda: results.count(place.database, id))
        jobs.wish(place.database, id, Verb.PAUSE)
        place.wait_for(id, Status.PAUSED)
        jobs.wish(place.database, id, Verb.RESUME)
        assert place.wait_for_end([id])[0].status is Status.COMPLETED
        stored = Counter(result.final_url for result in results.every(place.database, id))
        assert stored == dict.fromkeys(web.reachable(), 1)
        assert "database notifications are not available" in supervisor.log
        assert supervisor.terminate() == 0
        assert "Traceback" not in supervisor.log


def test_statements_of_all_threads_share_few_server_connections(pooled_url: str) -> None:
    database = open_database(pooled_url)
    try:
        for number in range(20):  # more often than psycopg needs to prepare a statement by itself
            new = [NewJob("page", {"url": f"https://{number}.example/"})] * 3
            assert len(jobs.enqueue_many(database, new)) == 3
            with database.transaction() as transaction:
                assert transaction.rows("jobs.counts")
        with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as connection:
            prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        assert prepared == (0,)
    finally:
        database.close()

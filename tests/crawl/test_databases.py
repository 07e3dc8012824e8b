"""The engine on both databases."""

from __future__ import annotations

import subprocess
from pathlib import Path

from silkline.model.job import NewJob
from silkline.model.ledger import NewUrl
from silkline.model.url import host_of, url_key
from silkline.store import jobs, urls
from silkline.store.opening import open_database
from tests.crawl.harness import Crawl, SyntheticWeb, closing


def test_a_crawl_that_is_killed_and_goes_on(web: SyntheticWeb, database_url: str, tmp_path: Path) -> None:
    tuning = {"checkpoint_seconds": 0.05, "window": 30, "per_host_window": 5, "refill_rows": 10}
    with closing(Crawl(tmp_path, tuning, database_url)) as crawl:
        crawl.enqueue(url=web.start, scope="any", concurrency=5)
        crawl.start(fetchers=2, parsers=1)
        while crawl.counts.done < 50:
            try:
                crawl.process.wait(0.02)
                break
            except subprocess.TimeoutExpired:
                continue
        crawl.kill()
        crawl.assert_books_balance()
        crawl.put_back()
        crawl.start(fetchers=1, parsers=0)
        assert crawl.finish() == "completed"
        assert {result.final_url for result in crawl.results()} == web.reachable()
        crawl.assert_books_balance()


def test_what_a_start_reads_from_the_ledger(database_url: str) -> None:
    with closing(open_database(database_url)) as database:
        job, _ = jobs.enqueue(database, NewJob("site", {"url": "https://a.example/"}))
        found = [
            ("https://a.example/", 0, "queued", None, "seed"),
            ("https://b.example/", 0, "queued", "https://a.example/", "redirect"),
            ("https://b.example/1", 1, "queued", None, "link"),
            ("https://c.example/", 1, "skipped", None, "link"),
        ]
        urls.seed(
            database,
            job.id,
            [
                NewUrl(id, url_key(url), url, host_of(url), depth, state, None, None, None, via, chain)
                for id, (url, depth, state, chain, via) in enumerate(found, 1)
            ],
        )
        assert list(urls.roots(database, job.id, chunk=1)) == [["https://a.example/"], ["https://b.example/"]]
        assert urls.queued_depths(database, job.id) == {0: 2, 1: 1}
        second = urls.queued(database, job.id, after=1)[0]
        assert (second.url, second.chain, second.found_via) == ("https://b.example/", "https://a.example/", "redirect")
        claimed = jobs.claim_one(database, "worker", "host", job.id)
        counts = urls.skip_queued(database, claimed, "over_limit")
        assert (counts.queued, counts.skipped, counts.discovered) == (0, 4, 4)
        assert urls.tally(database, job.id)["skipped"] == 4

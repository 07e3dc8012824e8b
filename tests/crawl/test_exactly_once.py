"""The set of results is the reachable set, each page once, whatever the number of processes."""

from __future__ import annotations

from collections import Counter

import pytest

from silkline.store import urls


@pytest.mark.parametrize(("fetchers", "parsers"), [(1, 0), (1, 1), (2, 1), (2, 2), (4, 2)])
def test_every_reachable_page_is_stored_once(web, make_crawl, fetchers, parsers):
    crawl = make_crawl()
    before = len(web.log())
    word = crawl.run(url=web.start, scope="any", fetchers=fetchers, parsers=parsers, concurrency=20)
    assert word == "completed"
    stored = Counter(result.final_url for result in crawl.results())
    assert set(stored) == web.reachable()
    assert set(stored.values()) == {1}
    asked = Counter((host, path) for _, host, path in web.log()[before:] if path != "/robots.txt")
    assert set(asked.values()) == {1}, "a page was fetched twice"
    assert {row.state for row in crawl.ledger().values()} == {"done"}
    crawl.assert_books_balance()


def test_ids_rise_in_the_order_of_discovery(web, make_crawl):
    crawl = make_crawl()
    crawl.run(url=web.start, scope="any", fetchers=2, concurrency=5)
    rows = sorted(crawl.ledger().values(), key=lambda row: row.id)
    assert [row.id for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0].found_via == "seed"
    for row in rows[1:]:
        assert row.found_on is not None
        assert row.found_on < row.id, "a URL stands before the page that named it"


def test_a_small_window_spills_to_the_ledger_and_loses_nothing(web, make_crawl):
    crawl = make_crawl(window=16, per_host_window=2, refill_rows=7, checkpoint_seconds=0.05)
    assert crawl.run(url=web.start, scope="any", fetchers=2, concurrency=4) == "completed"
    assert {result.final_url for result in crawl.results()} == web.reachable()
    crawl.assert_books_balance()


def test_tight_bounds_on_what_is_not_durable_slow_the_crawl_but_do_not_stop_it(web, make_crawl):
    crawl = make_crawl(soft_unsaved=2, hard_unsaved=5, checkpoint_seconds=0.02, checkpoint_pages=3)
    assert crawl.run(url=web.start, scope="any", fetchers=2, parsers=1, concurrency=20) == "completed"
    assert {result.final_url for result in crawl.results()} == web.reachable()


@pytest.mark.parametrize("fetchers", [1, 3])
def test_a_limit_is_met_exactly_and_the_rest_is_accounted_for(web, make_crawl, fetchers):
    crawl = make_crawl()
    assert crawl.run(url=web.start, scope="any", fetchers=fetchers, concurrency=10, limit=37) == "completed"
    crawl.assert_books_balance()
    assert crawl.counts.done == 37
    assert crawl.counts.queued == 0
    assert [(state, reason) for state, reason, _ in urls.reasons(crawl.database, crawl.job.id)] == [
        ("skipped", "over_limit")
    ]

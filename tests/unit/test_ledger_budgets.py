"""What the pages of one host may bring into the ledger, in bytes; large honest sites stay below."""

from __future__ import annotations

import msgspec
import pytest

from silkline.crawl.discovery import Discovery
from silkline.crawl.messages import KnownBudgets, Links
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import PACES, Plan, Tuning
from silkline.crawl.seen import Seen
from silkline.crawl.traps import CLOSE_LOOK, ROW_BYTES

PLAN = Plan(
    fetchers=1, parsers=0, concurrency=1, pace=PACES["max"], user_agent="x", scope="host", content="none", depth=5
)
SMALL = Tuning(source_bytes=100_000, host_bytes=100_000, page_bytes=20_000, page_factor=10)
LONG = "x" * 7_900


def discovery(tuning: Tuning = SMALL, **changes: object) -> tuple[Discovery, Outbox]:
    outbox = Outbox()
    found = Discovery(0, msgspec.structs.replace(PLAN, tuning=tuning, **changes), outbox)
    found.add_roots(["https://a.example/"])
    return found, outbox


def page(source: str = "a.example", depth: int = 1, most_bytes: int = 0) -> Links:
    return Links(1, depth, "link", "", [], source, most_bytes)


def size(outbox: Outbox) -> int:
    return sum(len(found.url) + ROW_BYTES for found in outbox.found)


@pytest.mark.parametrize(
    ("reason", "host", "depth", "changes"),
    [
        ("out_of_scope", "b.example", 1, {}),
        ("excluded", "a.example", 1, {"exclude": ("/x",)}),
        ("too_deep", "a.example", 6, {}),
        ("trap", "a.example", 1, {}),
    ],
)
def test_whatever_becomes_of_the_rows_they_have_a_budget(
    reason: str, host: str, depth: int, changes: dict[str, object]
) -> None:
    found, outbox = discovery(**changes)
    for number in range(100):
        found.links([f"https://{host}/{number}/{LONG}"], page(depth=depth))
    assert reason in {row.reason for row in outbox.found}
    skipped = [row for row in outbox.found if row.reason is not None]
    assert sum(len(row.url) + ROW_BYTES for row in skipped) <= SMALL.source_bytes
    assert size(outbox) <= SMALL.source_bytes + SMALL.host_bytes
    assert len(outbox.found) + outbox.not_stored == 100


def test_urls_on_endless_hosts_count_for_the_host_that_names_them() -> None:
    found, outbox = discovery(scope="any")
    for number in range(100):
        found.links([f"https://h{number}.example/{LONG}"], page())
    assert size(outbox) <= SMALL.source_bytes
    assert len(outbox.found) + outbox.not_stored == 100


def test_links_to_other_fetchers_and_shards_count_where_they_are_found() -> None:
    """Otherwise a host could send its whole budget to each of them, and fill the outbox between shards."""
    found, outbox = discovery(scope="any", fetchers=2, shards=4, shard=0)
    for number in range(400):
        found.links([f"https://h{number}.example/{LONG}"], page())
    sent = [url for several in outbox._foreign.values() for links in several for url in links.urls]
    assert sum(len(url) + ROW_BYTES for url in sent) + size(outbox) <= SMALL.source_bytes
    assert sent
    assert len(sent) + len(outbox.found) + outbox.not_stored == 400


def test_the_endless_hosts_of_one_domain_have_a_budget_together() -> None:
    found, outbox = discovery(scope="any")
    for number in range(400):
        found.links([f"https://h{number}.example/{LONG}"], page(f"s{number}.hostile.com"))
    assert SMALL.source_bytes < size(outbox) <= SMALL.source_bytes * 16
    assert len(outbox.found) + outbox.not_stored == 400
    before = len(outbox.found)
    found.links(["https://other.example/"], page("honest.com"))
    assert len(outbox.found) == before + 1


def test_another_host_may_bring_what_one_may_not() -> None:
    found, outbox = discovery(scope="any")
    found.know_budgets(KnownBudgets([], [("a.example", SMALL.source_bytes)]))
    found.links(["https://b.example/"], page())
    found.links(["https://b.example/"], page())
    assert (outbox.found, outbox.not_stored) == ([], 1), "counted once, however often it is named"
    found.links(["https://b.example/"], page("c.example"))
    assert [row.url for row in outbox.found] == ["https://b.example/"]


def test_what_the_ledger_has_counts_after_a_restart() -> None:
    found, outbox = discovery()
    found.know_budgets(KnownBudgets([("a.example", 12, SMALL.host_bytes, 0)], []))
    found.links(["https://a.example/1"], page())
    assert [row.reason for row in outbox.found] == ["trap"]


def test_a_page_brings_no_more_than_fits_its_size() -> None:
    found, outbox = discovery(SMALL, scope="any")
    urls = [f"https://a.example/{number}/{LONG}" for number in range(10)]
    most = found.page_bytes(400)
    assert most == 24_000
    found.links(urls, page(most_bytes=most))
    assert (len(outbox.found), outbox.not_stored) == (3, 7)
    found.links(urls, page(most_bytes=most))
    assert (len(outbox.found), outbox.not_stored) == (6, 7), "another page may bring the others"


def test_links_to_other_fetchers_are_bounded_too() -> None:
    found, outbox = discovery(SMALL, scope="any", fetchers=2)
    found.links([f"https://h{number}.example/{LONG}" for number in range(100)], page(most_bytes=24_000))
    batch = outbox.pack(live=None)  # type: ignore[arg-type]
    assert sum(len(links) for _, _, links in batch.foreign) < 30_000
    assert len(batch.found) == 3
    assert batch.not_stored >= 90
    assert outbox.unsaved_bytes > 40_000, "what waits to be stored slows the fetcher down"


def test_honest_sites_do_not_notice() -> None:
    found, outbox = discovery(Tuning())
    for number in range(0, 200_000, 100):
        own = [f"https://a.example/articles/{each:x}/{'w' * 72}" for each in range(number, number + 100)]
        found.links(own, page(most_bytes=found.page_bytes(2_000)))
    for number in range(0, 100_000, 1_000):
        others = [f"https://site-{each}.example/some/page/{'w' * 60}" for each in range(number, number + 1_000)]
        found.links(others, page(most_bytes=found.page_bytes(10_000)))
    assert outbox.not_stored == 0
    assert sum(row.reason is None for row in outbox.found) == 200_000
    assert sum(row.reason == "out_of_scope" for row in outbox.found) == 100_000


def test_a_url_can_be_forgotten() -> None:
    seen = Seen(0x5EED, buckets=2)
    urls = [f"https://a.example/{number}" for number in range(500)] + [f"https://a.example/{LONG}"]
    seen.add_all(urls)
    for url in urls[::2]:
        seen.forget(url)
    seen.forget("https://a.example/never")
    assert len(seen) == 250
    assert seen.add_all(urls) == urls[::2]


def test_links_of_other_hosts_do_not_use_up_the_budget_of_a_host() -> None:
    found, outbox = discovery(Tuning(), scope="any")
    own = [f"https://a.example/{number}" for number in range(CLOSE_LOOK + 1)]
    found.links(own, page())
    foreign = [f"https://a.example/list?x={number}&y=1" for number in range(3 * Tuning().query_budget)]
    found.links(foreign, page("evil.example"))
    real = [f"https://a.example/list?page={number}&cat=2" for number in range(60)]
    found.links(real, page())
    by_url = {row.url: row.reason for row in outbox.found}
    assert {by_url[url] for url in own + real} == {None}
    stored = sum(url in by_url for url in foreign)
    assert stored == CLOSE_LOOK + Tuning().query_budget, "what others link to has a budget too"
    assert stored + outbox.not_stored == len(foreign)


def test_links_that_are_only_counted_use_up_no_budget_of_their_host() -> None:
    found, outbox = discovery(msgspec.structs.replace(SMALL, host_bytes=150_000))
    many = [f"https://a.example/list?x={number}&y={LONG}" for number in range(200)]
    found.links(many, page("evil.example"))
    assert outbox.not_stored > 100
    found.links([f"https://a.example/{number}/{LONG[:1_000]}" for number in range(10)], page())
    assert [row.reason for row in outbox.found[-10:]] == [None] * 10

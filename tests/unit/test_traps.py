"""Sites that never end are recognised; sites that are merely large are not."""

import random
import tracemalloc

import pytest

from silkline.crawl.plan import Tuning
from silkline.crawl.traps import CLOSE_LOOK, LAST_ROW, HostBudget, Traps, template_of

SEED = 0x5EED
SMALL = Tuning(host_budget=2_000, template_budget=500, query_budget=100)


def taken(traps: Traps, urls: list[str]) -> int:
    """How many of them are let through."""
    host = HostBudget()
    return sum(traps.judge(host, url) is None for url in urls)


def test_an_endless_calendar() -> None:
    urls = [f"https://a.example/calendar/{year}/{month}" for year in range(500) for month in range(12)]
    assert taken(Traps(SMALL, SEED), urls) <= SMALL.template_budget + CLOSE_LOOK


def test_every_combination_of_filters() -> None:
    urls = [f"https://a.example/shop?colour={a}&size={b}" for a in range(60) for b in range(60)]
    assert taken(Traps(SMALL, SEED), urls) <= SMALL.query_budget + CLOSE_LOOK


def test_a_path_that_repeats_itself() -> None:
    traps = Traps(SMALL, SEED)
    assert traps.judge(HostBudget(), "https://a.example/b/c/b/c/b/c/b/c") is not None
    assert traps.judge(HostBudget(), "https://a.example/" + "x/" * 50) is not None
    assert traps.judge(HostBudget(), "https://a.example/" + "/".join(map(str, range(50)))) is not None
    assert traps.judge(HostBudget(), "https://a.example/2024/01/a/b/c/d/e/f") is None


def test_a_host_has_a_budget() -> None:
    traps, host = Traps(SMALL, SEED), HostBudget()
    let_through = sum(traps.judge(host, f"https://a.example/word-{number:x}") is None for number in range(3_000))
    assert let_through == SMALL.host_budget
    assert "2000 URLs" in (traps.judge(host, "https://a.example/one-more") or "")


def test_large_honest_sites_are_not_traps() -> None:
    traps = Traps(Tuning(), SEED)
    assert taken(traps, [f"https://a.example/article/{number}" for number in range(30_000)]) == 30_000
    assert taken(traps, [f"https://a.example/item?id={number}" for number in range(30_000)]) == 30_000


def test_pages_that_are_all_alike_close_their_template() -> None:
    traps, host = Traps(SMALL, SEED), HostBudget()
    host.found = CLOSE_LOOK + 1
    for number in range(64):
        traps.fetched(host, f"https://a.example/session/{number}", 0b1011 if number % 2 else 0b1010)
    assert "alike" in (traps.judge(host, "https://a.example/session/65") or "")
    assert traps.judge(host, "https://a.example/article/65") is None


def test_pages_that_others_link_to_close_their_template_only_for_others() -> None:
    """Others can link to many pages that do not exist, which the host answers with one and the same page."""
    traps, host = Traps(SMALL, SEED), HostBudget()
    host.found = CLOSE_LOOK + 1
    assert host.of_foreign() is host.foreign
    host.foreign.found = CLOSE_LOOK + 1
    for number in range(64):
        traps.fetched(host, f"https://a.example/item/{number}", 0b1011, foreign=True)
    assert "alike" in (traps.judge(host, "https://a.example/item/65", foreign=True) or "")
    assert traps.judge(host, "https://a.example/item/66") is None


def test_a_template_that_the_host_itself_closed_is_closed_for_others() -> None:
    traps, host = Traps(SMALL, SEED), HostBudget()
    host.found = CLOSE_LOOK + 1
    host.of_foreign().found = CLOSE_LOOK + 1
    for number in range(64):
        traps.fetched(host, f"https://a.example/item/{number}", 0b1011)
    assert "alike" in (traps.judge(host, "https://a.example/item/65", foreign=True) or "")


def test_pages_that_differ_keep_their_template_open() -> None:
    traps, host = Traps(SMALL, SEED), HostBudget()
    host.found = CLOSE_LOOK + 1
    fingerprints = random.Random(1)  # not `hash`, which is another one in every process
    for number in range(640):
        traps.fetched(host, f"https://a.example/article/{number}", fingerprints.getrandbits(64))
    assert traps.judge(host, "https://a.example/article/641") is None


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("https://a1.example/b/12/c3", "https://a1.example/b/#/c#"),
        ("https://a.example/?b=1&a=2&b=3", "https://a.example/?a&b"),
    ],
)
def test_templates(url: str, template: str) -> None:
    assert template_of(url) == template


def test_only_some_urls_of_a_trap_are_stored() -> None:
    traps, host = Traps(Tuning(trap_rows=3), SEED), HostBudget()
    assert [traps.store(host, "why") for _ in range(5)] == ["why", "why", f"why; {LAST_ROW}", None, None]
    assert traps.store(HostBudget(), "why") == "why", "another host has rows of its own"


def test_what_the_ledger_has_of_a_trap_counts_after_a_restart() -> None:
    traps, host = Traps(Tuning(trap_rows=3), SEED), HostBudget()
    traps.know(host, found=2, size=200, stored=2)
    assert [traps.store(host, "why") for _ in range(2)] == [f"why; {LAST_ROW}", None]


def test_endless_hosts_share_a_bound() -> None:
    traps = Traps(Tuning(trap_rows=3), SEED)
    assert sum(traps.store(HostBudget(), "why") is not None for _ in range(1_000)) == 150


def test_long_urls_leave_little_in_memory() -> None:
    traps, host = Traps(Tuning(host_bytes=1 << 40), SEED), HostBudget()
    host.found = CLOSE_LOOK + 1
    letters = "abcdefghij"
    tracemalloc.start()
    for number in range(2_000):
        name = "".join(letters[int(digit)] for digit in str(number))
        assert traps.judge(host, f"https://a.example/{'x' * 8_000}{name}?a&b") is None
        traps.fetched(host, f"https://a.example/{'x' * 8_000}{name}?a&b", number)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 2_000_000, "as text, these templates take 48 MB"

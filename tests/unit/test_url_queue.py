"""Links of other hosts must not put the own pages of a host behind them."""

from math import inf

import pytest

from silkline.crawl.frontier import ALONE_AFTER, Frontier
from silkline.crawl.plan import PACES
from silkline.crawl.sitemap_limits import level_of
from silkline.crawl.url_queue import MOST_PAUSE, Claim, FrontierUrl, UrlQueue, claimed, is_foreign
from silkline.model.ledger import FOREIGN


def own(id: int, depth: int = 2) -> FrontierUrl:
    return FrontierUrl(depth, id, f"https://a.example/{id}", depth, via="link")


def foreign(id: int, depth: int = 1) -> FrontierUrl:
    return FrontierUrl(depth, id, f"https://a.example/{id}", depth, via=FOREIGN)


def filled(*entries: FrontierUrl) -> UrlQueue:
    queue = UrlQueue()
    for entry in entries:
        queue.push(entry)
    return queue


def ids(queue: UrlQueue, level: float = inf) -> list[int]:
    found = []
    while queue.allows(level):
        found.append(queue.pop(level).id)
    return found


def test_own_and_foreign_urls_take_turns_though_the_foreign_ones_are_less_deep() -> None:
    queue = filled(*(foreign(id) for id in range(1, 6)), *(own(id) for id in range(11, 14)))
    assert len(queue) == 8
    assert ids(queue) == [1, 11, 2, 12, 3, 13, 4, 5]
    assert not queue


def test_each_part_is_breadth_first() -> None:
    queue = filled(own(1, 3), own(2, 1), foreign(3, 5), foreign(4, 2))
    assert ids(queue) == [4, 2, 3, 1]


def test_only_urls_down_to_the_level_are_taken() -> None:
    queue = filled(own(1, 1), own(2, 3), foreign(3, 2), foreign(4, 1))
    assert ids(queue, 1) == [4, 1]
    assert ids(queue, 2) == [3]
    assert ids(queue, 3) == [2]


def test_foreign_urls_that_fail_get_fewer_turns_until_one_succeeds() -> None:
    queue = filled(*(foreign(id) for id in range(1, 6)), *(own(id) for id in range(11, 40)))
    order = []
    for _ in range(10):
        entry = queue.pop()
        order.append(entry.id)
        queue.note(entry, failed=entry.via == FOREIGN)
    assert order == [1, 11, 2, 12, 13, 3, 14, 15, 16, 17]
    for _ in range(20):
        queue.note(foreign(99), failed=True)
    assert queue._pause == MOST_PAUSE
    queue.note(foreign(99), failed=False)
    assert queue._pause == 1


def test_a_missing_page_counts_as_a_failure_of_the_link_and_not_of_the_host() -> None:
    host = Frontier(PACES["max"], window=100, per_host=10).host("a.example")
    for entry in (*(foreign(id) for id in range(1, 6)), *(own(id) for id in range(11, 30))):
        host.queue.push(entry)
    order = []
    for _ in range(10):
        entry = host.queue.pop()
        order.append(entry.id)
        host.note(entry, answered=True, refused=False, missing=entry.via == FOREIGN)
    assert order == [1, 11, 2, 12, 13, 3, 14, 15, 16, 17]
    assert (host.answers_own, host.clock.failures) == (True, 0)


def test_failures_of_own_urls_do_not_hold_back_foreign_ones() -> None:
    queue = filled(foreign(1), foreign(2), own(11), own(12))
    for _ in range(5):
        queue.note(own(99), failed=True)
    assert ids(queue) == [1, 11, 2, 12]


def test_a_host_without_urls_at_the_level_goes_on_alone_if_the_level_takes_long() -> None:
    frontier = Frontier(PACES["max"], window=100, per_host=10)
    frontier.set_level(1, 0.0)
    frontier.offer("slow.example", FrontierUrl(1, 1, "https://slow.example/1", 1), 0.0)
    frontier.offer("quick.example", FrontierUrl(2, 2, "https://quick.example/2", 2), 0.0)
    frontier.offer("quick.example", FrontierUrl(2, 3, "https://quick.example/3", 2), 0.0)
    taken = frontier.take(1.0)
    assert taken is not None
    assert taken[1].id == 1
    frontier.look_at_level(ALONE_AFTER)
    assert frontier.waits_for_level(frontier.host("quick.example"))
    assert frontier.take(ALONE_AFTER) is None
    late = ALONE_AFTER + 1
    frontier.look_at_level(late)
    assert not frontier.waits_for_level(frontier.host("quick.example"))
    taken = frontier.take(late)
    assert taken is not None
    host, url = taken
    assert url.id == 2
    frontier.started(host, late)
    assert frontier.take(late + 100) is None, "one at a time: its pages may find URLs that are less deep"
    frontier.ended(host, late + 100)
    taken = frontier.take(late + 200)
    assert taken is not None
    assert taken[1].id == 3


def test_a_new_level_ends_the_time_alone() -> None:
    frontier = Frontier(PACES["max"], window=100, per_host=10)
    frontier.set_level(1, 0.0)
    frontier.look_at_level(ALONE_AFTER + 1)
    frontier.set_level(2, ALONE_AFTER + 2)
    frontier.offer("a.example", FrontierUrl(3, 1, "https://a.example/", 3), ALONE_AFTER + 2)
    assert frontier.take(ALONE_AFTER + 3) is None


def frontier_at(level: int, sure: int | None = None) -> tuple[Frontier, list[tuple[int, int]]]:
    frontier = Frontier(PACES["max"], window=100, per_host=10)
    frontier.set_level(level, 0.0, sure)
    shorter: list[tuple[int, int]] = []
    frontier.on_shorter = lambda entry, before: shorter.append((entry.depth, before))
    return frontier, shorter


def test_a_url_that_its_host_claims_gets_the_depth_and_the_place_of_its_own_link() -> None:
    frontier, shorter = frontier_at(2)
    hub = foreign(1, depth=4)
    frontier.offer("a.example", hub, 0.0)
    assert frontier.take(0.0) is None
    frontier.claim("a.example", hub.url, Claim(2, "link", ""), 0.0)
    taken = frontier.take(0.0)
    assert taken is not None
    assert (taken[1].id, taken[1].depth, taken[1].via) == (1, 2, "link")
    assert shorter == [(2, 4)]
    assert (len(taken[0].queue), frontier.size) == (0, 0)


def test_a_url_that_is_claimed_while_it_is_in_the_ledger_is_corrected_when_it_comes_back() -> None:
    frontier, shorter = frontier_at(2)
    hub = foreign(1, depth=4)
    frontier.read_ledger()
    frontier.claim("a.example", hub.url, Claim(2, "link", ""), 0.0)
    frontier.offer("a.example", hub, 0.0)
    taken = frontier.take(0.0)
    assert taken is not None
    assert (taken[1].depth, shorter) == (2, [(2, 4)])


def test_without_levels_a_claim_changes_only_the_place() -> None:
    frontier = Frontier(PACES["max"], window=100, per_host=10)
    frontier.on_shorter = lambda entry, before: pytest.fail("the ledger keeps its depth")
    frontier.offer("a.example", foreign(1, depth=4), 0.0)
    frontier.claim("a.example", foreign(1).url, Claim(2, "link", ""), 0.0)
    taken = frontier.take(0.0)
    assert taken is not None
    assert (taken[1].depth, taken[1].rank, taken[1].via) == (4, 2, "link")


@pytest.mark.parametrize("by_patience", [False, True])
def test_a_foreign_url_ahead_of_its_level_waits_for_the_pages_of_its_host(*, by_patience: bool) -> None:
    """One of them may link to it too, on a shorter path."""
    frontier, _ = frontier_at(3 if by_patience else 1, sure=1)
    if not by_patience:
        frontier.look_at_level(ALONE_AFTER + 1)
    now = ALONE_AFTER + 1
    frontier.offer("a.example", own(1, depth=1), now)
    frontier.offer("a.example", foreign(2, depth=3), now)
    taken = frontier.take(now)
    assert taken is not None
    host, first = taken
    assert first.id == 1
    frontier.started(host, now)
    assert frontier.take(now) is None
    frontier.retry("a.example", first, now + 5)
    frontier.ended(host, now)
    assert frontier.take(now) is None
    again = frontier.take(now + 5)
    assert again is not None
    assert again[1].id == 1
    frontier.wake(host, now + 5)
    last = frontier.take(now + 5)
    assert last is not None
    assert last[1].id == 2


def test_a_sitemap_that_its_host_names_too_stays_a_sitemap() -> None:
    named = FrontierUrl(1, 1, "https://a.example/map.xml", 1, 0, f"level-0 {FOREIGN}", "robots")
    assert is_foreign(named)
    for via in ("robots", "link"):
        again = claimed(named, Claim(1, via, ""))
        assert (again.via, level_of(again.chain), is_foreign(again)) == ("robots", 0, False)
    assert claimed(foreign(1), Claim(1, "robots", "")).via == "link", "a page stays a page"


def test_redirects_and_indexes_of_others_use_up_no_limit_of_what_a_host_claims() -> None:
    way = " ".join(f"https://evil.example/r{number}" for number in range(10))
    assert claimed(foreign(1)._replace(chain=way), Claim(1, "link", "")).chain == ""
    named = FrontierUrl(1, 1, "https://a.example/map.xml", 1, 0, f"level-10 {FOREIGN}", "sitemap_index")
    assert level_of(claimed(named, Claim(1, "robots", "")).chain) == 0
    assert level_of(claimed(named, Claim(1, "sitemap_index", "level-3")).chain) == 3
    deeper = named._replace(chain=f"level-2 {FOREIGN}")
    assert level_of(claimed(deeper, Claim(1, "sitemap_index", "level-5")).chain) == 2

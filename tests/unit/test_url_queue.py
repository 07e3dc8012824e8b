"""Links of other hosts must not put the own pages of a host behind them."""

from math import inf

from silkline.crawl.frontier import ALONE_AFTER, Frontier
from silkline.crawl.plan import PACES
from silkline.crawl.url_queue import MOST_PAUSE, FrontierUrl, UrlQueue
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

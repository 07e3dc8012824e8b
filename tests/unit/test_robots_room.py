"""Large robots.txt rules of many hosts, and too little memory for all of them."""

from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from silkline.crawl import robots_room
from silkline.crawl.endings import Endings
from silkline.crawl.frontier import Frontier
from silkline.crawl.plan import Pace, Tuning
from silkline.crawl.reading_turns import sender_of
from silkline.crawl.robots_cache import RobotsCache
from silkline.crawl.robots_room import SMALL, RobotsRoom
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch import robots_matching
from silkline.fetch.robots import DISALLOW_ALL, Robots
from silkline.model import host_wait
from tests.support.effort import examples
from tests.unit import test_waiting_ends as simulation
from tests.unit.test_waiting_ends import Answer, Site, SlowReader, crawl

KB = 1 << 10
PLACES = 10
"""Files of 5 KB for which there is room."""


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_room, "MOST_LARGE", PLACES * 5 * KB)


class Rooms:
    """A room whose origins are `address:name`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.unused: set[str] = set()
        self.lost: list[str] = []
        self.room = RobotsRoom(
            lambda origin: sender_of(f"{origin.partition(':')[2]}.com", origin.partition(":")[0]),
            lambda origin: origin not in self.unused,
            self.lost.append,
            lambda: self.now,
        )

    def add(self, origin: str, size: int = 5 * KB) -> bool:
        return self.room.add(origin, size)


def test_a_sender_with_many_large_files_takes_no_room_from_others() -> None:
    """185 ports of one address used up the room with 45 KB on the wire, and hosts with 6 KB of rules were skipped."""
    rooms = Rooms()
    assert [rooms.add(f"bad:h{number}") for number in range(PLACES + 5)] == [True] * PLACES + [False] * 5
    assert all(rooms.add(f"good{number}:g{number}") for number in range(PLACES - 1))
    assert rooms.lost == [f"bad:h{number}" for number in reversed(range(1, PLACES))], "the newest first"
    assert not rooms.add("bad:h1")


def test_hosts_of_one_domain_share_its_room() -> None:
    rooms = Rooms()
    for number in range(PLACES):
        assert rooms.add(f"address{number}:www{number}.bad")
    assert not rooms.add("another:more.bad")
    assert rooms.add("good:good")
    assert rooms.lost == [f"address{PLACES - 1}:www{PLACES - 1}.bad"]


def test_equals_do_not_take_the_room_from_each_other() -> None:
    """Otherwise each would load its file again and again, and none would get to a page."""
    rooms = Rooms()
    origins = [f"a{number}:h{number}" for number in range(PLACES + 3)]
    assert [rooms.add(origin) for origin in origins] == [True] * PLACES + [False] * 3
    assert not any(rooms.add(origin) for origin in origins[PLACES:])
    assert rooms.lost == []
    rooms.room.drop(origins[0])
    assert rooms.add(origins[-1])


def test_nobody_loses_rules_that_do_not_make_enough_room() -> None:
    rooms = Rooms()
    assert rooms.add("two:a")
    assert rooms.add("two:b")
    assert all(rooms.add(f"a{number}:h{number}") for number in range(PLACES - 2))
    assert not rooms.add("new:h", 9 * KB)
    assert rooms.lost == []


def test_rules_that_are_not_needed_go_first() -> None:
    rooms = Rooms()
    for number in range(PLACES):
        rooms.add(f"many:h{number}")
    rooms.unused = {"many:h3", "many:h7"}
    assert rooms.add("many:new")
    assert rooms.lost == ["many:h3", "many:h7"]
    assert rooms.add("many:other")
    rooms.unused = {"many:h4"}
    assert not rooms.add("many:third"), "thousands of origins are not looked at for each new one"
    rooms.now += 2.0
    assert rooms.add("many:third")


def test_small_rules_are_always_kept() -> None:
    rooms = Rooms()
    assert all(rooms.add(f"bad:h{number}", SMALL) for number in range(10 * PLACES))


def test_what_was_dropped_leaves_nothing_behind() -> None:
    rooms, chance, kept = Rooms(), Random(7), set[str]()
    for _ in range(2_000):
        origin = f"a{chance.randint(0, 4)}:h{chance.randint(0, 60)}"
        if origin in kept:
            rooms.room.drop(origin)
            kept.remove(origin)
        elif rooms.add(origin, chance.randint(1, 20) * KB):
            kept.add(origin)
        kept -= set(rooms.lost)
        rooms.lost.clear()
        assert rooms.room._used <= robots_room.MOST_LARGE
    for origin in kept:
        rooms.room.drop(origin)
    left = (rooms.room._used, rooms.room._kept, rooms.room._origins, rooms.room._shares)
    assert not any(left), left


def test_a_host_without_room_is_never_given_up() -> None:
    unused: Any = None
    frontier = Frontier(Pace(0.0, 1, 1, 0.0, 1.0), window=10, per_host=10)
    endings = Endings(Tuning(), frontier, unused, unused, lambda: None)
    host, url = frontier.host("a.example"), "https://a.example/"
    frontier.offer(host.name, FrontierUrl(0, 1, url, 0, 0, "", "seed"), 0.0)
    for failures in (1, 3, 100_000):
        endings.without_robots(host, url, Robots(DISALLOW_ALL, 0.0, reason=host_wait.ROBOTS_NO_ROOM), failures, 0.0)
        assert len(host.queue) == 1
        assert 0 < host.clock.next_at <= 30.0
    assert host.clock.waits_for()[0] == host_wait.ROBOTS_NO_ROOM


class RefusingReader(SlowReader):
    def refusal(self, rules: Robots, url: str) -> str | None:
        return rules.refusal(url)


def rules(kilobytes: int, delay: int) -> Answer:
    lines = "".join(f"Disallow: /private/{number:06}/{'a' * 40}\n" for number in range(kilobytes * KB // 60))
    return Answer(f"User-agent: *\nCrawl-delay: {delay}\n{lines}".encode())


@pytest.mark.parametrize("part", range(4))
def test_every_url_ends_with_less_room_than_the_rules_need(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_room, "MOST_LARGE", 30 * KB)
    reader = partial(RefusingReader, 12 << 20, 0.5, evicts=False)
    for seed in range(examples(4, 100)):
        chance = Random(f"{part}-{seed}")
        one_address = chance.random() < 0.5
        sites = [
            Site(
                1 if one_address else number,
                0,
                [[Answer()] for _ in range(chance.randint(1, 6))],
                robots=rules(chance.choice([5, 5, 12, 25]), chance.choice([0, 1, 4, 30])),
            )
            for number in range(1, chance.randint(8, 16))
        ]
        run = crawl(sites, reader, simulation.NEVER)
        assert run.left == {}, (part, seed)
        assert set(run.ended.values()) == {None}, "every page is stored"


def test_the_size_of_rules_is_in_bytes_of_memory() -> None:
    """Rules that are not ASCII take up to four bytes for each character."""
    narrow, wide = (f"-/{letter * 10_000} x\n" for letter in ("a", "\N{GRINNING FACE}"))
    assert robots_matching._compiled_bytes(wide) > 3 * robots_matching._compiled_bytes(narrow)
    added: list[int] = []
    cache: Any = object.__new__(RobotsCache)
    cache._rules, cache._failures = {}, {}
    cache._drop = lambda _: None
    cache._room = SimpleNamespace(add=lambda _, size: added.append(size) or True)
    for group in (narrow, wide):
        cache._loaded("https://a.example", Robots(group, 0.0))
    assert added[1] > 3 * added[0] >= 30_000

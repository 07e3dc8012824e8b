"""The frontier: every URL comes out once, in its time and order, however small the window."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from silkline.crawl.frontier import Frontier
from silkline.crawl.plan import Pace
from silkline.crawl.url_queue import Claim, FrontierUrl
from silkline.model.ledger import FOREIGN

PACE = Pace(delay=1.0, per_host=1, per_address=8, patience=0.0, most=60.0)
HOSTS = ("a.example", "b.example", "c.example")
VIAS = st.sampled_from(("link", FOREIGN))


def entry(id: int, depth: int = 0, via: str = "link") -> FrontierUrl:
    return FrontierUrl(depth, id, f"https://{id}", depth, via=via)


def frontier(**bounds: int) -> Frontier:
    return Frontier(PACE, **{"window": 100, "per_host": 100, **bounds})


def test_breadth_first_then_oldest_first() -> None:
    queue = frontier()
    for id, depth in ((1, 2), (2, 1), (3, 1), (4, 0)):
        queue.offer("a.example", entry(id, depth), 0.0)
    order = []
    for now in range(4):
        host, taken = queue.take(float(now)) or (None, None)
        assert host is not None
        assert taken is not None
        order.append(taken.id)
        queue.started(host, float(now))
        queue.ended(host, float(now))
    assert order == [4, 2, 3, 1]


def test_a_host_is_left_alone_for_its_delay_while_others_go_on() -> None:
    queue = frontier()
    for id in (1, 2):
        queue.offer("a.example", entry(id), 0.0)
    queue.offer("b.example", entry(3), 0.0)
    for expected in (1, 3):
        host, taken = queue.take(0.0) or (None, None)
        assert taken is not None
        assert taken.id == expected
        assert host is not None
        queue.started(host, 0.0)
        queue.ended(host, 0.0)
    assert queue.take(0.5) is None
    assert queue.next_at() == 1.0
    assert queue.take(1.0) is not None


def test_one_request_at_a_time_where_the_pace_says_so() -> None:
    queue = frontier()
    for id in (1, 2):
        queue.offer("a.example", entry(id), 0.0)
    host, _ = queue.take(0.0) or (None, None)
    assert host is not None
    queue.started(host, 0.0)
    assert queue.take(50.0) is None
    queue.ended(host, 50.0)
    assert queue.take(50.0) is not None


def test_nothing_deeper_than_the_level() -> None:
    queue = frontier()
    queue.set_level(1, 0.0)
    queue.offer("a.example", entry(1, 2), 0.0)
    assert queue.take(10.0) is None
    queue.set_level(2, 10.0)
    assert queue.take(10.0) is not None


def test_a_retry_waits_for_its_time() -> None:
    queue = frontier()
    queue.retry("a.example", entry(1), 5.0)
    assert queue.take(4.9) is None
    assert queue.take(5.0) is not None


def test_idle_hosts_are_forgotten_only_when_they_owe_no_delay() -> None:
    queue = frontier()
    queue.offer("a.example", entry(1), 0.0)
    host, _ = queue.take(0.0) or (None, None)
    assert host is not None
    queue.started(host, 0.0)
    queue.ended(host, 0.2)
    assert queue.drop_idle(0, 0.5) == []
    assert queue.drop_idle(0, 1.0) == ["a.example"]


def fill_with_links_of_others(queue: Frontier, number: int) -> None:
    for id in range(1, number + 1):
        queue.offer(HOSTS[id % len(HOSTS)], entry(id, via=FOREIGN), 0.0)


def test_foreign_urls_keep_no_own_url_out_of_memory() -> None:
    queue = frontier(window=10, per_host=4)
    fill_with_links_of_others(queue, 60)
    assert queue.size == 5
    for id in range(61, 71):
        assert queue.offer(HOSTS[id % len(HOSTS)], entry(id), 0.0)
    assert not queue.offer("d.example", entry(71), 0.0), "its room is limited too"


def test_own_urls_in_the_ledger_are_read_past_the_foreign_ones() -> None:
    """However many foreign URLs are in the ledger before them, and have no room."""
    queue = frontier(window=10, per_host=4)
    fill_with_links_of_others(queue, 60)
    for id in range(61, 70):
        queue.offer("a.example", entry(id), 0.0)
    for now in range(8):
        host, _ = queue.take(float(now)) or (None, None)
        assert host is not None
        queue.started(host, float(now))
        queue.ended(host, float(now))
    part = queue.next_to_read()
    while part is not None and part.foreign:  # the parts take turns
        queue.read_to(part, 70, end=True)
        part = queue.next_to_read()
    assert part is not None
    assert part.cursor >= 60
    assert queue.offer("a.example", entry(part.cursor + 1), 8.0)


def test_a_claimed_url_that_has_no_room_among_the_foreign_ones_is_an_own_one() -> None:
    queue = frontier(window=10, per_host=2)
    fill_with_links_of_others(queue, 60)
    queue.claim("a.example", "https://60", Claim(1, "link", ""), 0.0)
    assert queue.offer("a.example", entry(60, via=FOREIGN), 0.0)
    assert {each.via for each in queue.host("a.example").queue if each.id == 60} == {"link"}


def test_a_window_that_slow_hosts_fill_has_room_for_a_few_urls_of_each_other_host() -> None:
    queue = frontier(window=100, per_host=250)
    assert [queue.offer("slow.example", entry(id), 0) for id in range(1, 102)] == [True] * 100 + [False]
    assert [queue.offer("good.example", entry(id), 0) for id in (201, 202, 203)] == [True, True, False]
    others = [queue.offer(f"h{number}.example", entry(300 + number), 0) for number in range(120)]
    assert others == [True] * 98 + [False] * 22
    assert queue.size == 200, "twice the window at most"


class Spilling(RuleBasedStateMachine):
    """A frontier with a tiny window beside the ledger it reads: nothing is lost, nothing comes out twice."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Frontier(PACE, window=4, per_host=2)
        self.queue.read_ledger()
        self.ledger: dict[int, tuple[str, str]] = {}
        self.taken: dict[int, tuple[str, FrontierUrl]] = {}
        self.ended: set[int] = set()
        self.durable: set[int] = set()
        self.now = 0.0
        self.retried = 0
        self.claimed: set[int] = set()

    @initialize(hosts=st.lists(st.tuples(st.sampled_from(HOSTS), VIAS), max_size=12))
    def resume(self, hosts: list[tuple[str, str]]) -> None:
        """What an earlier run left queued is only in the ledger."""
        self.ledger = dict(enumerate(hosts, 1))

    @rule(host=st.sampled_from(HOSTS), via=VIAS)
    def find(self, host: str, via: str) -> None:
        """A URL gets its id."""
        id = len(self.ledger) + 1
        self.ledger[id] = host, via
        self.queue.offer(host, entry(id, via=via), self.now)

    @precondition(lambda self: self.ledger)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """The host of a URL links to it."""
        id = data.draw(st.sampled_from(sorted(self.ledger)))
        if self.ledger[id][1] == FOREIGN:
            self.claimed.add(id)
            self.queue.claim(self.ledger[id][0], entry(id).url, Claim(0, "link", ""), self.now)

    @precondition(lambda self: self.queue.next_to_read() is not None)
    @rule(chunk=st.integers(1, 3))
    def refill(self, chunk: int) -> None:
        part = self.queue.next_to_read()
        assert part is not None
        queued = [id for id in self.ledger if id > part.cursor and id not in self.durable]
        rows = [id for id in queued if (self.ledger[id][1] == FOREIGN) == part.foreign]
        some = rows[:chunk]
        for id in some:
            host, via = self.ledger[id]
            self.queue.offer(host, entry(id, via=via), self.now)
        end = len(rows) <= chunk
        self.queue.read_to(part, len(self.ledger) if end else some[-1], end=end)

    @rule(wait=st.floats(0, 3))
    def take(self, wait: float) -> None:
        self.now += wait
        got = self.queue.take(self.now)
        if got is not None:
            host, taken = got
            assert taken.id not in self.taken, "it is in flight already"
            assert taken.id not in self.ended, "it came out twice"
            self.queue.started(host, self.now)
            self.taken[taken.id] = (host.name, taken)

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), again=st.booleans())
    def finish(self, data: st.DataObject, again: bool) -> None:
        id = data.draw(st.sampled_from(sorted(self.taken)))
        name, taken = self.taken.pop(id)
        if again and not taken.attempts:
            self.retried += 1
            self.queue.retry(name, taken._replace(attempts=1), self.now + 1)
        else:
            self.ended.add(id)
        self.queue.ended(self.queue.host(name), self.now)

    @rule()
    def commit(self) -> None:
        self.queue.held -= self.ended
        self.durable |= self.ended

    @invariant()
    def memory_is_bounded(self) -> None:
        more = self.retried + len(self.claimed)
        assert self.queue.size <= 4 + 2 + more, "only retries, and claimed URLs, may come on top of the windows"

    def teardown(self) -> None:
        """Let it run to its end: everything in the ledger must come out."""
        for _ in range(20 * len(self.ledger) + 20):
            if self.queue.next_to_read() is not None:
                self.refill(2)
            self.take(5.0)
            for id in list(self.taken):
                name, _ = self.taken.pop(id)
                self.ended.add(id)
                self.queue.ended(self.queue.host(name), self.now)
            self.commit()
        assert self.ended == set(self.ledger)


TestSpilling = Spilling.TestCase
TestSpilling.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

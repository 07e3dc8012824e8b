"""The frontier: every URL comes out once, in its time and order, however small the window."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from silkline.crawl.frontier import Frontier
from silkline.crawl.plan import Pace
from silkline.crawl.url_queue import FrontierUrl

PACE = Pace(delay=1.0, per_host=1, per_address=8, patience=0.0, most=60.0)
HOSTS = ("a.example", "b.example", "c.example")


def entry(id: int, depth: int = 0) -> FrontierUrl:
    return FrontierUrl(depth, id, f"https://{id}", depth)


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


class Spilling(RuleBasedStateMachine):
    """A frontier with a tiny window beside the ledger it reads: nothing is lost, nothing comes out twice."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Frontier(PACE, window=4, per_host=2)
        self.queue.more = True
        self.ledger: dict[int, str] = {}
        self.taken: dict[int, tuple[str, FrontierUrl]] = {}
        self.ended: set[int] = set()
        self.durable: set[int] = set()
        self.now = 0.0
        self.retried = 0

    @initialize(hosts=st.lists(st.sampled_from(HOSTS), max_size=12))
    def resume(self, hosts: list[str]) -> None:
        """What an earlier run left queued is only in the ledger."""
        self.ledger = dict(enumerate(hosts, 1))

    @rule(host=st.sampled_from(HOSTS))
    def find(self, host: str) -> None:
        """A URL gets its id."""
        id = len(self.ledger) + 1
        self.ledger[id] = host
        self.queue.offer(host, entry(id), self.now)

    @precondition(lambda self: self.queue.wants_more())
    @rule(chunk=st.integers(1, 3))
    def refill(self, chunk: int) -> None:
        rows = [id for id in self.ledger if id > self.queue.cursor and id not in self.durable]
        some = rows[:chunk]
        for id in some:
            self.queue.offer(self.ledger[id], entry(id), self.now)
        end = len(rows) <= chunk
        self.queue.read_to(len(self.ledger) if end else some[-1], end=end)

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
        assert self.queue.size <= 4 + self.retried, "only retries may come on top of the window"

    def teardown(self) -> None:
        """Let it run to its end: everything in the ledger must come out."""
        for _ in range(20 * len(self.ledger) + 20):
            if self.queue.wants_more():
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

"""The heap of things that belong to hosts."""

from hypothesis import given
from hypothesis import strategies as st

from silkline.crawl.frontier import Frontier
from silkline.crawl.host_heap import HostHeap
from silkline.crawl.plan import PACES
from silkline.crawl.url_queue import FrontierUrl

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 9), st.sampled_from("abc")),
        st.tuples(st.sampled_from(["pop", "remove"]), st.just(0), st.sampled_from("abc")),
    ),
    max_size=400,
)


@given(STEPS)
def test_it_is_a_sorted_list_from_which_a_host_can_be_removed(steps: list[tuple[str, int, str]]) -> None:
    heap: HostHeap[int] = HostHeap()
    known: list[tuple[float, int, str, int]] = []
    for number, (step, at, host) in enumerate(steps):
        if step == "push":
            heap.push(at, number, host, number)
            known.append((at, number, host, number))
        elif step == "remove":
            assert heap.remove(host) == [each[3] for each in known if each[2] == host]
            known = [each for each in known if each[2] != host]
        elif known:
            assert heap.pop() == min(known)[3]
            known.remove(min(known))
        first = min(known, default=None)
        assert heap.first() == (first and (first[0], first[3]))
        assert (len(heap), sorted(heap)) == (len(known), sorted((at, host) for at, _, host, _ in known))
        assert heap.hosts == {each[2] for each in known}


def test_things_that_were_removed_take_no_memory_for_long() -> None:
    heap: HostHeap[int] = HostHeap()
    for number in range(1_000):
        heap.push(86400.0, number, f"h{number}.example", number)
        heap.remove(f"h{number}.example")
    assert len(heap._heap) < 200


class CountedName(str):
    """Counts how often names are compared with others."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__ne__(self, other)

    __hash__ = str.__hash__


def test_giving_up_many_hosts_does_not_look_at_the_retries_of_all_for_each() -> None:
    """Before, it took 4 seconds for 4,000 hosts, in one step of the event loop."""
    hosts = 1_000
    frontier = Frontier(PACES["normal"], window=20_000, per_host=1_000)
    for number in range(hosts):
        name = CountedName(f"h{number}.example")
        frontier.retry(name, FrontierUrl(1, number, f"http://{name}/", 1), 86400.0)
    CountedName.compared = 0
    for number in range(hosts):
        (entry,) = frontier.clear_retries(frontier.host(CountedName(f"h{number}.example")))
        assert entry.id == number
    assert frontier.size == 0
    assert CountedName.compared < 20 * hosts

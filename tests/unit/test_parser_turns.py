"""Whose page goes to a parser next."""

from silkline.crawl.parser_turns import ParserTurns
from silkline.crawl.reading_turns import sender_of


def order(turns: ParserTurns[str], seconds: dict[str, float] | None = None, address: str = "") -> list[str]:
    """Read everything. `seconds`: how long each page of a host takes; otherwise it is quick."""
    read = []
    while turns:
        read.append(page := turns.take())
        host = page.split()[0]
        if seconds and host in seconds:
            turns.was_slow(sender_of(host, address), seconds[host])
    return read


def filled(*pages: tuple[str, str, int]) -> ParserTurns[str]:
    """Pages of hosts: the name, the address, and how many."""
    turns: ParserTurns[str] = ParserTurns()
    for host, address, number in pages:
        for each in range(number):
            turns.add(sender_of(host, address), f"{host} {each}")
    return turns


def places(read: list[str], word: str) -> list[int]:
    return [place for place, page in enumerate(read) if word in page]


def test_every_page_is_taken_once_and_those_of_a_host_in_their_order() -> None:
    turns = filled(("a.com", "", 3), ("b.com", "192.0.2.1", 2), ("c.com", "192.0.2.1", 2))
    assert len(turns) == 7
    read = order(turns)
    assert not turns
    assert read == ["a.com 0", "b.com 0", "a.com 1", "b.com 1", "a.com 2", "c.com 0", "c.com 1"]


def test_many_pages_of_one_domain_or_address_have_one_turn() -> None:
    hosts = [(f"h{number}.bad.com", "", 10) for number in range(20)]
    domains = [(f"bad{number}.com", "192.0.2.1", 10) for number in range(20)]
    addresses = [(f"h{number}.wide.com", f"192.0.2.{number + 10}", 10) for number in range(20)]
    for many in (hosts, domains, addresses):
        read = order(filled(*many, ("www.good.org", "192.0.2.2", 3)))
        # The first pages of several addresses come before it is known that one domain has them all.
        assert places(read, "good")[0] <= len(many)
        assert places(read, "good")[2] - places(read, "good")[0] == 4


def test_a_domain_with_slow_pages_waits_until_others_had_as_much_time() -> None:
    turns = filled(("slow.com", "", 3), ("good.org", "", 100), ("other.org", "", 1))
    assert places(order(turns, {"slow.com": 3.0}), "slow") == [0, 27, 53]


def test_many_slow_domains_hold_nobody_up_a_second_time() -> None:
    turns = filled(*((f"slow{number}.com", "", 5) for number in range(50)), ("good.org", "", 10))
    read = order(turns, {f"slow{number}.com": 3.0 for number in range(50)})
    assert places(read, "good")[-1] == 50 + 9


def test_a_new_domain_does_not_wait_for_the_past_of_others() -> None:
    turns = filled(("old.com", "", 100))
    for _ in range(99):
        turns.take()
    turns.add(sender_of("new.com"), "new.com 0")
    turns.add(sender_of("old.com"), "old.com 100")
    assert order(turns) == ["new.com 0", "old.com 99", "old.com 100"]

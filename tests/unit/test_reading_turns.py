"""Whose input is read next, and which one is given up if there is no room."""

from silkline.crawl.reading_turns import ReadingTurns, sender_of


def order(turns: ReadingTurns[str], seconds: dict[str, float] | None = None) -> list[str]:
    """Read everything. `seconds`: how long each input of a host takes; otherwise it is quick."""
    read = []
    while turns:
        sender, item = turns.take()
        turns.took(sender, (seconds or {}).get(sender.host, 0.001))
        read.append(item)
    return read


def filled(*inputs: tuple[str, str, int]) -> ReadingTurns[str]:
    """Inputs of hosts: the name, the address, and how many."""
    turns: ReadingTurns[str] = ReadingTurns()
    for host, address, number in inputs:
        for each in range(number):
            turns.add(sender_of(host, address), f"{host} {each}")
    return turns


def test_many_hosts_of_one_domain_have_one_turn() -> None:
    turns = filled(*((f"h{number}.bad.com", "", 1) for number in range(20)), ("www.good.org", "", 3))
    assert [place for place, item in enumerate(order(turns)) if "good" in item] == [1, 3, 5]


def test_many_domains_at_one_address_have_one_turn() -> None:
    many = [(f"bad{number}.com", "192.0.2.1", 1) for number in range(20)]
    turns = filled(*many, ("good.org", "192.0.2.2", 3))
    assert [place for place, item in enumerate(order(turns)) if "good" in item] == [1, 3, 5]


def test_ports_of_one_address_have_one_turn() -> None:
    turns = filled(*((f"192.0.2.1:{8000 + number}", "", 1) for number in range(20)), ("good.org", "", 2))
    assert [place for place, item in enumerate(order(turns)) if "good" in item] == [1, 3]


def test_hosts_of_one_domain_take_turns() -> None:
    turns = filled(("bad.github.io", "", 10), ("good.github.io", "", 2))
    assert order(turns)[:4] == ["bad.github.io 0", "good.github.io 0", "bad.github.io 1", "good.github.io 1"]


def test_a_domain_with_slow_inputs_comes_last_but_is_not_forgotten() -> None:
    turns = filled(("slow.com", "", 3), ("good.org", "", 24), ("other.org", "", 1))
    read = order(turns, {"slow.com": 3.0})
    assert [place for place, item in enumerate(read) if "slow" in item] == [0, 14, 27]


def test_many_slow_domains_hold_nobody_up_a_second_time() -> None:
    turns = filled(*((f"slow{number}.com", "", 2) for number in range(50)), ("good.org", "", 10))
    read = order(turns, {f"slow{number}.com": 3.0 for number in range(50)})
    assert max(place for place, item in enumerate(read) if "good" in item) == 50 + 9


def test_a_new_domain_does_not_wait_for_the_past_of_others_and_they_do_not_wait_for_new_ones() -> None:
    turns = filled(("old.com", "", 100))
    for _ in range(99):
        turns.took(turns.take()[0], 3.0)
    turns.add(sender_of("new.com"), "new.com 0")
    assert turns.take()[1] == "new.com 0"
    for number in range(20):
        turns.took(turns.take()[0], 3.0)
        turns.add(sender_of(f"new{number}.com"), f"new{number}.com 0")
        if not any(sender.host == "old.com" for sender in turns._queues):
            break
    else:
        raise AssertionError("it waits for ever")


def test_the_input_that_is_read_last_is_given_back_and_of_several_the_largest() -> None:
    sizes = {"bad.com": 10, "large.com": 30, "small.com": 5, "kept.com": 0}
    turns = filled(("bad.com", "", 3), ("large.com", "", 1), ("small.com", "", 1), ("kept.com", "", 9))

    def dropped(host: str, size: int) -> str | None:
        return turns.drop_last(turns.place(sender_of(host)), size, lambda item: sizes[item.split()[0]])

    assert [dropped("new.com", 20) for _ in range(5)] == ["bad.com 2", "bad.com 1", "large.com 0", None, None]
    assert dropped("small.com", 1) is None, "it would be read after the others itself"


def test_new_senders_without_end_do_not_stop_one_that_was_read_before() -> None:
    turns: ReadingTurns[str] = ReadingTurns()
    good = sender_of("good.example", "192.0.2.1")
    turns.add(good, "first")
    turns.took(turns.take()[0], 3.0)
    turns.add(good, "second")
    for number in range(40):
        turns.add(sender_of(f"[2001:db8:1:{number:x}::1]", f"2001:db8:1:{number:x}::"), "new")
        sender, item = turns.take()
        if item == "second":
            return
        turns.took(sender, 3.0)
    raise AssertionError("it was never read")


def test_the_number_of_remembered_senders_is_limited() -> None:
    turns: ReadingTurns[str] = ReadingTurns()
    for number in range(25_000):
        turns.took(sender_of(f"h{number}.d{number}.example", f"{number}"), 3.0)
    assert len(turns._groups) <= 20_000
    assert len(turns._hosts) <= 20_000

"""New senders whose inputs take long, without end: the others keep their fair share. In simulated time."""

from itertools import pairwise

import pytest

from silkline.crawl.parser_turns import ParserTurns
from silkline.crawl.reading_turns import ReadingTurns, Sender, sender_of
from silkline.crawl.render_turns import RenderTurns
from silkline.fetch.render_slots import WaitingPage

HOUR = 3_600.0
HANGS = 25.0
QUICK = 1.0


@pytest.mark.parametrize("new", [1, 5, 20])
def test_new_senders_with_pages_that_hang_leave_their_share_of_the_browsers_to_others(new: int) -> None:
    turns, time, number, times = RenderTurns(), 0.0, 0, list[float]()

    def arrive() -> None:
        nonlocal number
        number += 1
        turns.add(WaitingPage(f"new{number}.com", f"10.0.{number // 250}.{number % 250}"))

    for _ in range(new):
        arrive()
    for _ in range(50):
        turns.add(WaitingPage("good.org", "192.0.2.1"))
    while time < 3 * HOUR:
        page = turns.take()
        seconds = QUICK if page.host == "good.org" else HANGS
        turns.used(page, seconds)
        time += seconds
        if page.host == "good.org":
            turns.add(WaitingPage("good.org", "192.0.2.1"))
            times.append(time)
        else:
            arrive()
    gaps = [after - before for before, after in pairwise(times[1:])]
    # A page of a second counts as two seconds, so a fair share has this many pages.
    assert len(times) > 0.6 * time / (1 + new) / (2 * QUICK)
    assert max(gaps) <= (1 + new) * HANGS


@pytest.mark.parametrize("new", [1, 5, 20])
def test_new_senders_with_slow_inputs_leave_their_share_of_the_isolated_reader_to_others(new: int) -> None:
    turns: ReadingTurns[str] = ReadingTurns()
    good, time, quick, number = sender_of("good.org", "192.0.2.1"), 0.0, 0.0, 0
    for _ in range(10):
        turns.add(good, "quick")
    while time < HOUR:
        for _ in range(new - sum(sender != good for sender in turns._queues)):
            number += 1
            turns.add(sender_of(f"new{number}.com", f"2001:db8:{number:x}::"), "slow")
        sender, item = turns.take()
        seconds = 3.0 if item == "slow" else 0.25
        turns.took(sender, seconds)
        time += seconds
        if item == "quick":
            turns.add(good, "quick")
            quick += seconds
    assert quick > 0.6 * time / (1 + new)


@pytest.mark.parametrize("slow", [True, False], ids=["slow", "quick"])
@pytest.mark.parametrize("new", [1, 5, 20])
def test_new_senders_leave_their_share_of_a_parser_to_others(new: int, slow: bool) -> None:
    turns: ParserTurns[Sender] = ParserTurns()
    good, number, pages = sender_of("good.org", "192.0.2.1"), 0, 0

    def arrive() -> None:
        nonlocal number
        number += 1
        sender = sender_of(f"new{number}.com", f"2001:db8:{number:x}::")
        turns.add(sender, sender)

    for _ in range(new):
        arrive()
    for _ in range(5_000):
        turns.add(good, good)
    while number < 1_000 and pages < 5_000:
        sender = turns.take()
        if sender == good:
            pages += 1
            continue
        if slow:
            turns.was_slow(sender, 3.0)
        arrive()
    # A page counts 0.125 s, and 3 s more if it is slow.
    assert pages > 0.5 * number / (1 + new)


def test_a_sender_that_comes_back_has_no_turns_left_from_before() -> None:
    turns: ReadingTurns[str] = ReadingTurns()
    back, other = sender_of("back.org"), sender_of("other.org")
    turns.add(back, "first")
    turns.took(turns.take()[0], 1.0)
    for _ in range(40):
        turns.add(other, "other")
        turns.took(turns.take()[0], 1.0)
    for _ in range(4):
        turns.add(back, "back")
        turns.add(other, "other")
    read = []
    for _ in range(8):
        sender, item = turns.take()
        turns.took(sender, 1.0)
        read.append(item)
    assert read[:4].count("back") <= 3

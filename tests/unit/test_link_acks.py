"""Links between fetchers: a page counts when the last of its links has arrived."""

from silkline.crawl.link_acks import LinkAcks
from silkline.crawl.messages import PageOutcome
from silkline.model.ledger import Settled

PAGES = [PageOutcome(Settled(1, "done"), None, 0)]


def test_a_batch_waits_for_every_answer() -> None:
    tickets = LinkAcks()
    (first, one), (second, two) = tickets.issue(("seat", 7), PAGES, [(1, b"x"), (2, b"y")])
    assert (one, two) == (1, 2)
    assert tickets.links(second) == b"y"
    assert tickets.answered(first) is None
    complete = tickets.answered(second)
    assert complete is not None
    assert (complete.delivery, complete.pages) == (("seat", 7), PAGES)
    assert len(tickets) == 0


def test_the_pages_of_a_dead_fetcher_count_for_nothing_but_its_links_arrive() -> None:
    tickets = LinkAcks()
    dead = object()
    (ticket, _), *_ = tickets.issue((dead, 1), PAGES, [(1, b"x")])
    tickets.disown(dead)
    complete = tickets.answered(ticket)
    assert complete is not None
    assert complete.pages == []


def test_who_takes_the_place_of_a_dead_fetcher_hears_what_it_left_unanswered() -> None:
    tickets = LinkAcks()
    issued = tickets.issue(("seat", 1), PAGES, [(1, b"x"), (2, b"y")]) + tickets.issue(("seat", 2), [], [(2, b"z")])
    mine = [ticket for ticket, owner in issued if owner == 2]
    assert list(tickets.unanswered(2)) == mine
    tickets.answered(mine[0])
    assert list(tickets.unanswered(2)) == mine[1:]

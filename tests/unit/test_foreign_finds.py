"""What other hosts say about the URLs of a host uses up budgets of theirs, and keeps no URL of its own out."""

from __future__ import annotations

import pytest

from silkline.crawl.discovery import Discovery
from silkline.crawl.messages import Links
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import Tuning
from silkline.crawl.seen import seeded_digests
from silkline.crawl.sitemap_limits import MOST_NESTED, chain_at, is_named_by_others, named_by_others
from silkline.crawl.traps import CLOSE_LOOK
from silkline.crawl.url_queue import Claim
from silkline.model.ledger import FOREIGN, QUEUED
from tests.unit.test_ledger_budgets import PLAN, SMALL, discovery, page, size

GOOD, EVIL = "a.example", "evil.example"
BUDGET = 50
STORED = CLOSE_LOOK + BUDGET
"""So many queries of other hosts are stored: the first few hundred are not looked at closely."""
TUNING = Tuning(query_budget=BUDGET)


def large_host(tuning: Tuning = TUNING, **changes: object) -> tuple[Discovery, Outbox]:
    """A discovery that looks closely at the URLs of the good host."""
    found, outbox = discovery(tuning, scope="any", **changes)
    found.links([f"https://{GOOD}/{number}" for number in range(CLOSE_LOOK + 1)], page())
    outbox.found.clear()
    return found, outbox


def redirect(source: str, via: str = "redirect", depth: int = 1) -> Links:
    return Links(1, depth, via, f"https://{source}/from", [], source)


def queries(name: str, number: int) -> list[str]:
    return [f"https://{GOOD}/list?{name}={each}&y=1" for each in range(number)]


@pytest.mark.parametrize("links", [redirect(EVIL), redirect(GOOD, FOREIGN)], ids=["other host", "foreign URL"])
def test_redirects_that_others_lead_to_use_up_no_budget_of_a_host(links: Links) -> None:
    found, outbox = large_host()
    for url in queries("x", 2 * STORED):
        found.links([url], links)
    assert {row.found_via for row in outbox.found} == {FOREIGN}
    assert len(outbox.found) == STORED
    outbox.found.clear()
    found.links(queries("page", BUDGET), page())
    assert [row.reason for row in outbox.found] == [None] * BUDGET


@pytest.mark.parametrize("depth", [0, 1])
def test_a_redirect_of_a_seed_is_of_the_user(depth: int) -> None:
    found, outbox = large_host()
    found.links(["https://www.a.example/"], redirect(GOOD, depth=depth))
    assert [row.found_via for row in outbox.found] == [FOREIGN if depth else "redirect"]


def test_redirects_to_other_hosts_use_the_budget_of_the_host_that_redirects() -> None:
    found, outbox = discovery(SMALL, scope="any")
    for number in range(2_000):
        found.links([f"https://h{number}.example/some/page"], redirect(EVIL))
    assert size(outbox) <= SMALL.source_bytes
    assert len(outbox.found) + outbox.not_stored == 2_000


def test_a_host_may_link_to_what_others_have_no_budget_for() -> None:
    found, outbox = large_host()
    found.links(queries("x", STORED), page(EVIL))
    outbox.found.clear()
    poison = queries("page", BUDGET)
    found.links(poison, page(EVIL))
    assert (outbox.found, outbox.not_stored) == ([], BUDGET)
    found.links(poison, page())
    assert [row.reason for row in outbox.found] == [None] * BUDGET


def test_a_deep_link_of_another_host_does_not_make_a_page_too_deep() -> None:
    found, outbox = discovery(Tuning(), scope="any", depth=3)
    hub = ["https://a.example/hub"]
    found.links(hub, page(EVIL, depth=4))
    assert outbox.found == [], "the crawl is not so deep yet: the host itself may have a shorter path"
    found.links(hub, page(depth=2))
    assert [(row.depth, row.reason) for row in outbox.found] == [(2, None)]


def test_at_the_last_level_a_link_of_another_host_is_too_deep() -> None:
    found, outbox = discovery(Tuning(), scope="any", depth=3)
    found.at_level(3)
    found.links(["https://a.example/hub"], page(EVIL, depth=4))
    assert [row.reason for row in outbox.found] == ["too_deep"]


def test_a_page_that_another_host_names_as_a_very_nested_sitemap_is_fetched() -> None:
    found, outbox = discovery(Tuning(), scope="any")
    named = Links(1, 1, "sitemap_index", chain_at(MOST_NESTED + 1), [], EVIL)
    found.links(["https://a.example/page"], named)
    found.links(["https://a.example/page"], page())
    assert [row.reason for row in outbox.found] == [None]


def test_a_sitemap_that_another_host_names_is_marked_so() -> None:
    found, outbox = discovery(Tuning(), scope="any")
    for source in (GOOD, EVIL):
        found.links([f"https://a.example/{source}.xml"], Links(0, 1, "robots", "", [], source))
    own, foreign = outbox.found
    assert not is_named_by_others(own.chain or "")
    assert is_named_by_others(foreign.chain or "")
    assert foreign.found_via == "robots"


def test_the_mark_of_a_sitemap_comes_once_and_before_the_redirects() -> None:
    chain = named_by_others("level-2 https://a.example/old.xml")
    assert chain.split() == ["level-2", FOREIGN, "https://a.example/old.xml"]
    assert named_by_others(chain) == chain


@pytest.mark.parametrize("from_ledger", [False, True])
def test_a_host_claims_what_others_found_first(*, from_ledger: bool) -> None:
    found, outbox = discovery(Tuning(), scope="any")
    claims: list[tuple[str, Claim]] = []
    found.on_claim = lambda *claim: claims.append(claim)
    hub = ["https://a.example/hub"]
    if from_ledger:
        found.know(b"", seeded_digests(hub, PLAN.seen_seed))
    else:
        found.links(hub, page(EVIL, depth=3))
        assert [row.found_via for row in outbox.found] == [FOREIGN]
    outbox.found.clear()
    for depth in (2, 1):
        found.links(hub, page(EVIL, depth=depth))
        found.links(hub, page(depth=depth))
    assert claims == [(hub[0], Claim(2, "link", ""))], "once"
    assert outbox.found == []


def test_a_link_of_another_host_to_what_a_host_links_to_changes_nothing() -> None:
    found, outbox = discovery(Tuning(), scope="any")
    found.on_claim = lambda *claim: pytest.fail("it is no foreign URL")
    for source in (GOOD, EVIL, GOOD):
        found.links(["https://a.example/hub"], page(source))
    assert [row.found_via for row in outbox.found] == ["link"]


def test_a_redirect_that_others_have_no_budget_for_is_followed_when_its_host_links_to_it() -> None:
    found, outbox = large_host()
    source, target = f"https://{GOOD}/go", f"https://{GOOD}/list?name=last&y=1"
    found.links(queries("name", STORED), page(EVIL))
    found.links([source], page(EVIL))
    found.links([target], Links(7, 1, FOREIGN, source, [], GOOD))
    assert target not in [row.url for row in outbox.found]
    outbox.found.clear()
    for _ in range(2):
        found.links([source], page(GOOD))
    assert [(row.url, row.state) for row in outbox.found] == [(target, QUEUED)]


def test_a_redirect_beyond_the_redirects_of_others_is_followed_when_its_host_links_to_it() -> None:
    found, outbox = discovery(Tuning(), scope="any")
    source, target = f"https://{GOOD}/go", "https://other.example/there"
    found.links([source], page(EVIL))
    found.not_followed(source, target)
    outbox.found.clear()
    for _ in range(2):
        found.links([source], page(GOOD))
    assert [(row.url, row.state) for row in outbox.found] == [(target, QUEUED)]

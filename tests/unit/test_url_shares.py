"""How the domains of a `map` job share its limit of URLs."""

from silkline.crawl.url_shares import PATIENCE, UrlShares


def shares(most: int, *domains: str) -> UrlShares:
    made = UrlShares(most, domains, 0.0)
    made.waiting.update(domains)
    return made


def test_a_domain_lists_its_share_while_another_one_waits() -> None:
    made = shares(10, "a", "b")
    assert made.room("a", 0.0) == 5
    made.add("a", 5)
    assert made.room("a", 0.0) == 0
    assert made.must_wait("a", 0.0)
    assert not made.must_wait("b", 0.0)


def test_what_a_domain_leaves_over_is_for_all() -> None:
    made = shares(10, "a", "b")
    made.add("a", 5)
    made.add("b", 2)
    assert made.must_wait("a", 0.0)
    made.ended("b")
    assert not made.must_wait("a", 2.0)
    assert made.room("a", 2.0) == 3
    made.add("a", 3)
    assert made.over


def test_a_domain_that_comes_back_may_list_what_is_left_of_its_share() -> None:
    made = shares(10, "a", "b", "c")
    made.ended("b")
    made.add("a", 3)
    made.add("c", 3)
    assert made.room("a", 0.0) == 4, "nobody waits for the rest"
    made.add("a", 3)
    made.waiting["b"] += 1
    assert made.room("b", 0.0) == 1


def test_a_domain_whose_sitemaps_do_not_arrive_holds_up_nobody() -> None:
    made = shares(10, "a", "b")
    made.add("a", 5)
    assert made.must_wait("a", PATIENCE - 2.0)
    assert not made.must_wait("a", PATIENCE)
    made.read("b", PATIENCE)
    assert made.room("a", PATIENCE) == 0


def test_one_domain_has_the_whole_limit() -> None:
    assert shares(10, "a").room("a", 0.0) == 10


def test_a_limit_below_the_number_of_domains_is_used() -> None:
    made = shares(2, "a", "b", "c")
    made.add("a", 1)
    made.add("b", 1)
    assert made.over
    assert made.room("c", 0.0) == 0

"""How the domains of a `map` job share its limit of URLs."""

from silkline.crawl.url_shares import EARNED, MOST_HELD, PATIENCE, UrlShares


def shares(most: int, *domains: str) -> UrlShares:
    made = UrlShares(most, domains, 0.0)
    made.waiting.update(domains)
    return made


def test_a_domain_lists_its_share_while_another_one_waits() -> None:
    made = shares(10, "a", "b")
    assert made.room("a", 0.0) == 5
    made.add("a", 5, 0.0)
    assert made.room("a", 0.0) == 0
    assert made.must_wait("a", 0.0)
    assert not made.must_wait("b", 0.0)


def test_what_a_domain_leaves_over_is_for_all() -> None:
    made = shares(10, "a", "b")
    made.add("a", 5, 0.0)
    made.add("b", 2, 0.0)
    assert made.must_wait("a", 0.0)
    made.ended("b")
    assert not made.must_wait("a", 2.0)
    assert made.room("a", 2.0) == 3
    made.add("a", 3, 0.0)
    assert made.over


def test_a_domain_that_comes_back_may_list_what_is_left_of_its_share() -> None:
    made = shares(10, "a", "b", "c")
    made.ended("b")
    made.add("a", 3, 0.0)
    made.add("c", 3, 0.0)
    assert made.room("a", 0.0) == 4, "nobody waits for the rest"
    made.add("a", 3, 0.0)
    made.waiting["b"] += 1
    assert made.room("b", 0.0) == 1


def test_a_domain_whose_sitemaps_do_not_arrive_holds_up_nobody() -> None:
    made = shares(10, "a", "b")
    made.add("a", 5, 0.0)
    assert made.must_wait("a", PATIENCE - 2.0)
    assert not made.must_wait("a", PATIENCE)
    made.came_further("b", PATIENCE)
    assert made.room("a", PATIENCE) == 0


def test_one_domain_has_the_whole_limit() -> None:
    assert shares(10, "a").room("a", 0.0) == 10


def test_a_limit_below_the_number_of_domains_is_used() -> None:
    made = shares(2, "a", "b", "c")
    made.add("a", 1, 0.0)
    made.add("b", 1, 0.0)
    assert made.over
    assert made.room("c", 0.0) == 0


def held_for(made: UrlShares, *, each: float, lists: int, most: int = 100) -> float:
    """How long "a" has to wait while "b" has a sitemap with so many URLs each time, and never its share."""
    now = 0.0
    for _ in range(most):
        if not made.must_wait("a", now):
            return now
        now += each
        made.add("b", lists, now)
    return now


def test_sitemaps_that_list_nothing_hold_up_nobody() -> None:
    made = shares(1_000, "a", "b")
    made.add("a", 500, 0.0)
    assert held_for(made, each=PATIENCE / 4, lists=0) == PATIENCE


def test_a_slow_trickle_of_urls_holds_up_others_for_a_limited_time() -> None:
    made = shares(1_000, "a", "b")
    made.add("a", 500, 0.0)
    assert MOST_HELD <= held_for(made, each=PATIENCE / 4, lists=1) <= MOST_HELD + PATIENCE


def test_a_large_site_that_is_being_read_keeps_its_share() -> None:
    made = shares(10_000_000, "a", "b")
    made.add("a", 5_000_000, 0.0)
    urls = round(PATIENCE / EARNED)
    assert held_for(made, each=PATIENCE / 2, lists=urls) == 100 * PATIENCE / 2


def test_the_time_in_which_a_host_must_not_be_asked_does_not_count() -> None:
    made = shares(10, "a", "b")
    made.add("a", 5, 0.0)
    made.sleeps("b", 1.0, 1.0 + PATIENCE)
    made.sleeps("b", 2.0, 1.0 + PATIENCE)
    assert made.must_wait("a", 2 * PATIENCE - 1.0)
    assert not made.must_wait("a", 2 * PATIENCE)


def test_patience_begins_when_the_host_may_be_asked_again() -> None:
    made = shares(10, "a", "b")
    made.add("a", 5, 0.0)
    made.sleeps("b", 0.0, PATIENCE)
    made.came_further("b", 1.0)
    assert made.must_wait("a", 2 * PATIENCE - 1.0)
    assert not made.must_wait("a", 2 * PATIENCE)


def test_a_host_that_asks_to_wait_again_and_again_holds_up_others_for_a_limited_time() -> None:
    made = shares(10, "a", "b")
    made.add("a", 5, 0.0)
    now = 0.0
    while made.must_wait("a", now):
        made.sleeps("b", now, now + PATIENCE)
        now += PATIENCE
    assert now == MOST_HELD

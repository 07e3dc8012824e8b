"""How many processes and requests a crawl gets from its spec and from the settings."""

from typing import Any

import pytest

from silkline.crawl.plan import Plan
from silkline.crawl.plan_from_spec import plan_of
from silkline.model.spec import SiteSpec


def plan(spec: dict[str, Any], *, fetchers: int = 1, parsers: int = 0, concurrency: int = 300) -> Plan:
    given = SiteSpec.model_validate({"url": "https://a.example/", **spec})
    return plan_of(given, fetchers=fetchers, parsers=parsers, concurrency=concurrency)


@pytest.mark.parametrize("fetchers", [1, 2, 3, 7, 100, 256])
def test_the_fetchers_share_the_requests_that_the_setting_allows(fetchers: int) -> None:
    for made in (plan({}, fetchers=fetchers), plan({"fetchers": fetchers})):
        assert made.fetchers == fetchers
        assert 0 < made.fetchers * made.concurrency <= 300
        assert made.fetchers * (made.concurrency + 1) > 300


def test_there_are_never_more_fetchers_than_requests() -> None:
    for made in (plan({}, fetchers=8, concurrency=3), plan({"fetchers": 8}, concurrency=3)):
        assert (made.fetchers, made.concurrency) == (3, 1)


def test_what_the_job_says_is_for_each_fetcher() -> None:
    made = plan({"fetchers": 4, "concurrency": 50}, concurrency=10)
    assert (made.fetchers, made.concurrency) == (4, 50)


def test_settings_hold_where_the_job_says_nothing() -> None:
    assert plan({}, fetchers=3, parsers=2).parsers == 2
    assert plan({"parsers": 0}, fetchers=3, parsers=2).parsers == 0
    assert plan({"fetchers": 1}, fetchers=3).fetchers == 1


def test_a_host_that_waits_for_the_delay_of_the_user_is_not_given_up() -> None:
    assert plan({"delay": 3600}).tuning.longest_wait > 3600

"""Which URLs belong to a crawl."""

from typing import Any

import pytest

from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.scope import EXCLUDED, OUT_OF_SCOPE, TOO_DEEP, Scope
from silkline.model.spec import SiteSpec
from silkline.model.url import host_of


def scope(seed: str = "https://www.example.co.uk/docs/start", **spec: Any) -> Scope:
    made = Scope(plan_of(SiteSpec(url=seed, **spec), fetchers=1, concurrency=1))
    made.add_roots([seed])
    return made


def judge(made: Scope, url: str, depth: int = 1) -> str | None:
    return made.judge(url, host_of(url), depth)


@pytest.mark.parametrize(
    ("kind", "url", "reason"),
    [
        ("host", "https://www.example.co.uk/other", None),
        ("host", "http://example.co.uk/", None),
        ("host", "https://blog.example.co.uk/", OUT_OF_SCOPE),
        ("host", "https://www.example.co.uk:8443/", OUT_OF_SCOPE),
        ("domain", "https://blog.example.co.uk/", None),
        ("domain", "https://other.co.uk/", OUT_OF_SCOPE),
        ("prefix", "https://www.example.co.uk/docs/", None),
        ("prefix", "https://www.example.co.uk/docs/a/b?c", None),
        ("prefix", "https://www.example.co.uk/docs", OUT_OF_SCOPE),
        ("prefix", "https://www.example.co.uk/docs-old/a", OUT_OF_SCOPE),
        ("prefix", "https://www.example.co.uk/?x=/docs/", OUT_OF_SCOPE),
        ("prefix", "https://other.example/docs/a", OUT_OF_SCOPE),
        ("any", "https://other.example/", None),
    ],
)
def test_kinds_of_scope(kind: str, url: str, reason: str | None) -> None:
    assert judge(scope(scope=kind), url) == reason


def test_depth() -> None:
    made = scope(depth=2)
    assert judge(made, "https://www.example.co.uk/a", 2) is None
    assert judge(made, "https://www.example.co.uk/a", 3) == TOO_DEEP


def test_include_and_exclude_are_asked_of_links_but_not_of_seeds() -> None:
    made = scope(include=["/blog/"], exclude=["print"])
    assert judge(made, "https://www.example.co.uk/blog/1") is None
    assert judge(made, "https://www.example.co.uk/shop/1") == EXCLUDED
    assert judge(made, "https://www.example.co.uk/blog/print/1") == EXCLUDED
    assert judge(made, "https://www.example.co.uk/shop/1", 0) is None


def test_excluded_hosts_are_excluded_even_as_seeds() -> None:
    made = scope(scope="any", exclude_hosts=["Bad.example", "www.worse.example"])
    assert judge(made, "https://bad.example/", 0) == EXCLUDED
    assert judge(made, "https://worse.example/") == EXCLUDED
    assert judge(made, "https://good.example/") is None


def test_seeded_hosts_only() -> None:
    made = scope(scope="any", seeded_hosts_only=True)
    assert judge(made, "https://example.co.uk/elsewhere") is None
    assert judge(made, "https://other.example/") == OUT_OF_SCOPE


def test_what_a_seed_redirects_to_belongs_to_the_crawl() -> None:
    made = scope()
    assert judge(made, "https://new.example/") == OUT_OF_SCOPE
    assert judge(made, "https://new.example/", 0) is None
    made.add_roots(["https://new.example/"])
    assert judge(made, "https://new.example/more") is None


def test_a_prefix_of_the_whole_host() -> None:
    assert judge(scope("https://example.com/", scope="prefix"), "https://example.com/a/b") is None

"""Canonical URLs: WHATWG's own cases, our rules one by one, and properties over any input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.model.url import (
    KEEP_ALL,
    MAX_LENGTH,
    UrlRules,
    canonical,
    canonical_links,
    host_of,
    origin_of,
    parse,
    shard_of,
    slot_of,
    url_key,
)
from tests.support.effort import examples

WPT = Path(__file__).parent.parent / "data" / "wpt-url" / "urltestdata.json"
CASES = [case for case in json.loads(WPT.read_text()) if isinstance(case, dict)]
TIDY = UrlRules(drop_tracking=True, drop_sessions=True, drop_parameters=frozenset({"ref"}))


def expected_href(case):
    href = case.get("href", "")
    return href if href.startswith(("http:", "https:")) else None


def test_the_platform_tests_are_all_there():
    assert len(CASES) > 850
    assert sum(expected_href(case) is not None for case in CASES) > 240


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["input"])[:40])
def test_parsing_agrees_with_the_platform_tests(case):
    assert parse(case["input"], case["base"]) == expected_href(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["input"])[:40])
def test_the_short_way_agrees_with_the_long_way_on_the_platform_tests(case):
    base = case["base"] or "http://example.org/foo/bar"
    assert canonical_links(base, [case["input"]], TIDY) == [canonical(case["input"], TIDY, base)]


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("HTTP://EXAMPLE.com", "http://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/%2e%2E/a", "http://example.com/a"),
        ("http://example.com/a#part", "http://example.com/a"),
        ("http://example.com/a?", "http://example.com/a"),
        ("http://example.com/a?#", "http://example.com/a"),
        ("http://example.com?b=1", "http://example.com/?b=1"),
        ("http://me:secret@example.com/a", "http://example.com/a"),
        ("http://me@example.com/a@b", "http://example.com/a@b"),
        ("http://example.com/%7euser/%41%2f", "http://example.com/~user/A%2F"),
        ("http://example.com/a?q=%c3%a4", "http://example.com/a?q=%C3%A4"),
        ("http://example.com/a?q=ä b", "http://example.com/a?q=%C3%A4%20b"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com/%4%31", "http://example.com/%2541"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://example.com./a", "http://example.com/a"),
        ("http://example.com.:8080/a", "http://example.com:8080/a"),
        ("http://./", None),
        ("http://me@./", None),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://1.2.3./", "http://1.2.0.3/"),
        ("http://1.2.3../", None),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://example.com/a\n", "http://example.com/a"),
        ("http://example.com/\x00a", "http://example.com/%00a"),
        ("http://example.com/\ud800", "http://example.com/%EF%BF%BD"),
        ("http://example.com/a?x=1&utm_source=2", "http://example.com/a?x=1&utm_source=2"),
        ("http://256.1.1.1/", None),
        ("http://example.com../", None),
        ("http://", None),
        ("mailto:me@example.com", None),
        ("javascript:void(0)", None),
        ("data:text/html,hello", None),
        ("ftp://example.com/", None),
        ("/only/a/path", None),
        ("", None),
    ],
)
def test_canonical_spelling(href, expected):
    assert canonical(href) == expected


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("http://a.example/?utm_source=x&b=1&UTM_Medium=y", "http://a.example/?b=1"),
        ("http://a.example/?gclid=1", "http://a.example/"),
        ("http://a.example/p;jsessionid=1F?PHPSESSID=2&c=3", "http://a.example/p?c=3"),
        ("http://a.example/b/..;jsessionid=1/c", "http://a.example/c"),
        ("https://X.COM.;sid=2'", "https://x.com.;sid=2'/"),
        ("http://a.example;jsessionid=1/p;sid=2/c", "http://a.example;jsessionid=1/p/c"),
        ("http://a.example/?ref=1&reference=2", "http://a.example/?reference=2"),
        ("http://a.example/?a=1&&b", "http://a.example/?a=1&&b"),
        ("http://a.example/?utm%5Fsource=x", "http://a.example/"),
    ],
)
def test_rules_leave_parameters_out(href, expected):
    assert canonical(href, TIDY) == expected


def test_only_what_the_rules_name_is_left_out():
    href = "http://a.example/p;jsessionid=1?utm_source=2&ref=3"
    assert canonical(href, KEEP_ALL) == href
    assert canonical(href, UrlRules(drop_tracking=True)) == "http://a.example/p;jsessionid=1?ref=3"
    assert canonical(href, UrlRules(drop_sessions=True)) == "http://a.example/p?utm_source=2&ref=3"


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("c", "https://a.example/b/c"),
        ("/c", "https://a.example/c"),
        ("//c.example/d", "https://c.example/d"),
        ("?c=1", "https://a.example/b/page?c=1"),
        ("#c", "https://a.example/b/page?q=1"),
        ("", "https://a.example/b/page?q=1"),
        ("?", "https://a.example/b/page"),
        ("../c", "https://a.example/c"),
        ("./c", "https://a.example/b/c"),
        ("c/../d", "https://a.example/b/d"),
        ("..", "https://a.example/"),
        ("\\c", "https://a.example/c"),
        ("https:c", "https://a.example/b/c"),
        ("http:c", "http://c/"),
        ("c:d", None),
        (" /c ", "https://a.example/c"),
        ("https://c.example?d", "https://c.example/?d"),
        ("https://C.example:443", "https://c.example/"),
        ("https://me:secret@c.example/", "https://c.example/"),
        ("https://127.1/", "https://127.0.0.1/"),
        ("https://c<d.example/", None),
        ("//c.example:\x00", "https://c.example/"),
        ("tel:123", None),
        ("/c%20d?e=%2Ff", "https://a.example/c%20d?e=%2Ff"),
        ("/c%2E%2E/d%7e", "https://a.example/c../d~"),
        ("/%2e%2E/c", "https://a.example/c"),
        ("https://a.example/c?", "https://a.example/c"),
        ("https://a.example//c", "https://a.example//c"),
        ("https://a.example.d/c", "https://a.example.d/c"),
    ],
)
def test_links_are_resolved_against_their_page(href, expected):
    base = "https://me:secret@a.example/b/page?q=1#top"
    assert canonical_links(base, [href]) == [expected]
    assert canonical(href, base=base) == expected


def test_a_url_without_end_is_refused_both_ways():
    base = "http://a.example/"
    longest = "x" * (MAX_LENGTH - len(base))
    for way in (lambda href: canonical(href, base=base), lambda href: canonical_links(base, [href])[0]):
        assert way("/" + longest) == base + longest
        assert way("/" + longest + "x") is None
        assert way("/a#" + longest * 2) == "http://a.example/a"


@pytest.mark.parametrize("scheme", ["http:", "https:", ""])
@pytest.mark.parametrize("label", ["a" * 63, "b-" * 20 + "c", "x"])
def test_a_host_that_no_network_can_have_is_refused_both_ways(scheme, label):
    base = "http://a.example/"
    longest = ".".join([label] * 300)[-249:].lstrip(".-")
    for way in (lambda href: canonical(href, base=base), lambda href: canonical_links(base, [href])[0]):
        for port in ("", ":8080"):
            assert way(f"{scheme}//{longest}.com{port}/p") is not None
            for more in ("yyyyy.", "y" * 6_000 + ".", "y." * 2_000):
                assert way(f"{scheme}//{more}{longest}.com{port}/p") is None


def test_a_page_whose_own_url_is_no_url_has_no_links():
    assert canonical_links("nonsense", ["/a", "http://a.example/"]) == [None, None]


def test_host_and_origin():
    url = "https://a.example:8443/b?c=//d/e"
    assert host_of(url) == "a.example:8443"
    assert origin_of(url) == "https://a.example:8443"
    assert host_of("http://[::1]/") == "[::1]"


def test_keys_and_slots_are_the_same_in_every_process():
    """Fixed values: a ledger written by one version must be read by the next."""
    assert url_key("https://example.com/") == 5522761390303137003
    assert slot_of("example.com", 7) == 6


def test_keys_are_signed_64_bit():
    keys = {url_key(f"https://example.com/{number}") for number in range(2000)}
    assert len(keys) == 2000
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert min(keys) < 0 < max(keys)


def test_shards_are_even():
    counts = [0] * 8
    for number in range(8000):
        counts[shard_of(f"host{number}.example", 8)] += 1
    assert min(counts) > 850
    assert max(counts) < 1150


def test_the_hosts_of_one_shard_have_all_slots():
    slots = [0] * 8
    for number in range(16_000):
        host = f"host{number}.example"
        slots[slot_of(host, 8)] += shard_of(host, 4) == 1
    assert min(slots) > 400


def test_importing_it_stays_light():
    code = "import sys, silkline.model.url; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"tldextract", "pydantic", "turbohtml", "asyncio"} & set(loaded)


# Strings made of the pieces that URL parsers trip over find more than random text does.
# fmt: off
PIECES = st.sampled_from([
    "http:", "https:", "HTTP:", "javascript:", "data:", "/", "//", "\\", "?", "#", "@", ":", ":80", ":443", ":0", "&",
    "=", "..", ".", "%2e", "%41", "%4", "%", "%zz", "a", "A", "b.example", "xn--", "xn--a", "127.1", "0x7f.1", "1.2.3",
    "[::1]", "user:pw@", "utm_source=1", ";", ";jsessionid=1", "ref=1", "'", '"', "|", "~", "ä", "ü.example", "\ud800",
    "\x00", " ", "\t", "\n", "b.example.", ";sid=2", "%20", "%2F", "%C3%A9", "%7E", "%5b", "http://a.example/",
    "http://a.example",
])
# fmt: on
HREFS = st.one_of(
    st.lists(PIECES, max_size=10).map("".join), st.text(max_size=30), st.from_regex(r"https?://[^/]{1,9}/.*")
)
BASES = st.sampled_from(
    [
        "http://a.example/",
        "https://a.example/b/c;d?e=f&ref=1",
        "https://u:p@A.example.:443/%41/x%zz?#g",
        "http://127.0.0.1:8080/a/b/",
        "http://[::1]/x//y",
    ]
)
RULES = st.sampled_from([KEEP_ALL, TIDY])


@settings(max_examples=examples(400, 1500), deadline=None)
@given(HREFS, BASES, RULES)
def test_the_short_way_is_the_long_way(href, base, rules):
    assert canonical_links(base, [href], rules) == [canonical(href, rules, base)]


@settings(max_examples=examples(400, 1500), deadline=None)
@given(HREFS, BASES, RULES)
def test_canonical_is_final_and_keeps_no_secret(href, base, rules):
    url = canonical(href, rules, base)
    if url is None:
        return
    assert canonical(url, rules) == url
    assert url.isascii()
    assert url.startswith(("http://", "https://"))
    assert "#" not in url
    assert "@" not in host_of(url)
    assert url.partition("?")[1] == "" or url.partition("?")[2]
    assert host_of(url)
    assert host_of(url) == host_of(url).lower()
    assert len(url) <= MAX_LENGTH
    assert url.startswith(origin_of(url) + "/")


@settings(max_examples=300, deadline=None)
@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_credentials_never_survive(user, password):
    url = canonical(f"http://{user}:{password}@a.example/path")
    assert url is None or "@" not in url or "a.example" not in host_of(url)
    plain = canonical("http://wanderer:sesame@a.example/path")
    assert plain == "http://a.example/path"

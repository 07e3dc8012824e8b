"""robots.txt: RFC 9309's own examples, the files one meets, and the table of what each answer means."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from silkline.fetch import robots, robots_matching
from silkline.fetch.robots import DISALLOW_ALL, FRESH_FOR, MAX_BYTES, RETRY_AFTER, Robots, decide, read
from silkline.fetch.robots_matching import MAX_RULES, MAX_WIDENED, MAX_WILDCARDS, comparable_path, group_text
from silkline.model import fetched
from silkline.model.fetched import Fetched

SITE = "https://example.com"


def allowed(text: str | bytes, path: str, product: str = "silkline") -> bool:
    body = text.encode() if isinstance(text, str) else text
    return read(body, 0.0, product).allows(SITE + path)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/", "/", True),
        ("/fish", "/fish", True),
        ("/fish", "/fish.html", True),
        ("/fish", "/fishheads/yummy.html", True),
        ("/fish", "/fish.php?id=anything", True),
        ("/fish", "/Fish.asp", False),
        ("/fish", "/catfish", False),
        ("/fish*", "/fish/salmon", True),
        ("/fish/", "/fish", False),
        ("/fish/", "/fish/?id=1", True),
        ("fish", "/fish", True),
        ("/*.php", "/index.php", True),
        ("/*.php", "/folder/any.php.file.html", True),
        ("/*.php", "/", False),
        ("/*.php$", "/filename.php", True),
        ("/*.php$", "/filename.php?parameters", False),
        ("/*.php$", "/filename.php5", False),
        ("/*.php$", "/a.php.php", True),
        ("/fish*.php", "/fishheads/catfish.php?parameters", True),
        ("/fish*.php", "/Fish.PHP", False),
        ("*a*", "/banana", True),
        ("/$", "/", True),
        ("/$", "/x", False),
        ("/a$b", "/a$b", True),
        ("/a$b", "/a%24b", True),
        ("/a$b", "/a", False),
        ("/***x", "/yx", True),
        ("/a*$", "/abc", True),
        ("/aba*aba$", "/aba", False),
        ("/aba*aba$", "/ababa", False),
        ("/aba*aba$", "/abaaba", True),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar", True),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A", True),
        ("/a%2fb", "/a/b", False),
        ("/a%2Fb", "/a%2fb", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/x", "/?x", False),
        ("/?x", "/?x=1", True),
    ],
)
def test_patterns(pattern: str, path: str, matches: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {pattern}", path) is not matches
    assert allowed(f"User-agent: *\nDisallow: /\nAllow: {pattern}xxxxxxxx", path) is False


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        ("Allow: /p\nDisallow: /", "/page", True),
        ("Disallow: /\nAllow: /p", "/page", True),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", True),
        ("Allow: /$\nDisallow: /", "/", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow:", "/x", True),
        ("Disallow: /robots.txt\nDisallow: /", "/robots.txt", True),
        ("Allow:\nDisallow: /", "/x", False),
        ("Disallow: /*/\nAllow: /?", "/?/", False),
    ],
)
def test_the_longest_rule_decides(lines: str, path: str, expected: bool) -> None:
    assert allowed(f"User-agent: *\n{lines}", path) is expected


GROUPS = """
Disallow: /before-any-group
User-Agent: *
Disallow: /star

User-agent: other
User-agent: Silkline/2.0 (+https://example.com)   # us
Sitemap: https://example.com/in-between.xml
Disallow: /both

User-agent: silklinefoo
Disallow: /foo

user-agent : SILKLINE
Disallow: /again
Crawl-Delay: 2.5
Crawl-delay: 9
"""


@pytest.mark.parametrize(
    ("path", "product", "expected"),
    [
        ("/star", "silkline", True),
        ("/both", "silkline", False),
        ("/again", "silkline", False),
        ("/foo", "silkline", True),
        ("/both", "Other", False),
        ("/again", "other", True),
        ("/star", "nobody", False),
        ("/before-any-group", "nobody", True),
        ("/foo", "silklinefoo", False),
    ],
)
def test_groups(path: str, product: str, expected: bool) -> None:
    assert allowed(GROUPS, path, product) is expected


def test_delay_and_sitemaps() -> None:
    found = read(GROUPS.encode(), 100.0)
    assert found.crawl_delay == 2.5
    assert found.sitemaps == ("https://example.com/in-between.xml",)
    assert found.expires_at == 100.0 + FRESH_FOR
    assert read(b"User-agent: *\nCrawl-delay: 3600", 0).crawl_delay == 30.0
    for wrong in (b"-1", b"nan", b"inf x", b"soon", b""):
        assert read(b"User-agent: *\nCrawl-delay: " + wrong, 0).crawl_delay is None


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /x",
        b"User-agent: *\rDisallow: /x",
        b"User-agent: *\r\n\r\nDisallow: /x\r\n",
        b"\0User-agent: *\n\0Disallow: /x",
        b"\xff\xfe" + "User-agent: *\nDisallow: /x".encode("utf-16-le"),
        b"\xfe\xff" + "User-agent: *\nDisallow: /x".encode("utf-16-be"),
        b"\xff\xfe\x80junk\nUser-agent: *\n\xffnonsense: \xfe\nDisallow: /x",
        b"<html>not found</html>\nUser-agent: *\nDisallow: /x",
        b"USER-AGENT:*\nDISALLOW:/x#y",
        "User-agent: *\nDisallow: /ü\nDisallow: /x".encode("latin-1"),
    ],
)
def test_odd_files_are_read_all_the_same(body: bytes) -> None:
    assert not allowed(body, "/x")
    assert allowed(body, "/y")


def test_what_is_behind_500_kib_is_not_read() -> None:
    filler = b"# filler\n" * (MAX_BYTES // 9)
    assert not allowed(filler[:-100] + b"\nUser-agent: *\nDisallow: /x\n", "/x")
    assert allowed(filler + b"#" * 20 + b"\nUser-agent: *\nDisallow: /x\n", "/x")


def test_the_rule_that_decided_can_be_shown() -> None:
    found = read(b"User-agent: *\nDisallow: /private/ # keep out\nAllow: /private/open", 0)
    assert found.explain(SITE + "/private/x") == "Disallow: /private/"
    assert found.explain(SITE + "/private/open") == "Allow: /private/open"
    assert found.explain(SITE + "/") == "no rule of robots.txt speaks of it"
    assert "http_503" in decide(Fetched(SITE, status=503, reason="http_503"), 0).explain(SITE)


@pytest.mark.parametrize(
    ("status", "reason", "open_", "keeps"),
    [
        (404, "http_404", True, FRESH_FOR),
        (401, "http_401", True, FRESH_FOR),
        (403, "http_403", True, FRESH_FOR),
        (410, "http_410", True, FRESH_FOR),
        (429, "http_429", False, RETRY_AFTER),
        (500, "http_500", False, RETRY_AFTER),
        (503, "http_503", False, RETRY_AFTER),
        (302, fetched.TOO_MANY_REDIRECTS, True, FRESH_FOR),
        (302, fetched.REDIRECT_LOOP, True, FRESH_FOR),
        (302, fetched.BAD_REDIRECT, True, FRESH_FOR),
        (302, fetched.ADDRESS_BLOCKED, False, RETRY_AFTER),
        (0, fetched.HOST_UNKNOWN, False, RETRY_AFTER),
        (0, fetched.CONNECT_FAILED, False, RETRY_AFTER),
        (0, fetched.TIMEOUT, False, RETRY_AFTER),
        (0, fetched.TLS_FAILED, False, RETRY_AFTER),
        (200, fetched.TRUNCATED, False, RETRY_AFTER),
        (200, fetched.BAD_ENCODING, False, RETRY_AFTER),
        (404, fetched.HEADERS_TOO_LARGE, False, RETRY_AFTER),
        (206, "http_206", False, RETRY_AFTER),
    ],
)
def test_what_an_answer_means(status: int, reason: str, open_: bool, keeps: float) -> None:
    found = decide(Fetched(SITE, status=status, reason=reason), 1000.0)
    assert found.allows(SITE + "/x") is open_
    assert (found.expires_at, found.reason) == (1000.0 + keeps, reason)


def test_a_longer_retry_after_is_honoured() -> None:
    answer = Fetched(SITE, status=503, reason="http_503", headers={"retry-after": "7200"})
    assert decide(answer, 0.0).expires_at == 7200.0


def test_hosts_share_what_is_equal() -> None:
    one = read(b"User-agent: *\nDisallow: /wp-admin/\n", 0)
    two = read(b"# another file\nUser-Agent: *\nDisallow:   /wp-admin/", 5)
    assert one.group is two.group
    assert decide(Fetched(SITE, status=500, reason="http_500"), 0).group is DISALLOW_ALL
    assert sys.getsizeof(one) < 120


def test_patterns_made_to_be_slow_are_not() -> None:
    found = read(b"User-agent: *\nDisallow: /" + b"*a" * 900 + b"$", 0)
    assert found.allows(SITE + "/" + "a" * 899 + "b" * 50_000)


def test_only_our_group_is_kept() -> None:
    agents = b"".join(b"user-agent: a%d\n" % number for number in range(15_000))
    rules = b"".join(b"disallow: /%d\n" % number for number in range(5_000))
    assert read(agents + rules + b"user-agent: silkline\ndisallow: /x", 0).group == "-/x"
    assert read(agents + rules, 0).group == ""


def test_rules_beyond_the_limits_forbid_more_and_never_less() -> None:
    many = b"".join(b"disallow: /a%d/b/c\n" % number for number in range(MAX_RULES))
    late = b"disallow: /late/folder/x\nallow: /late/folder/x/y\nallow: /late\n"
    found = read(b"user-agent: *\n" + many + late, 0)
    assert not found.allows(SITE + "/a7/b/c")
    assert found.allows(SITE + "/a7/b/d")
    assert not found.allows(SITE + "/late/folder/x")
    assert not found.allows(SITE + "/late/other")
    assert "too many rules" in found.explain(SITE + "/late/other")
    assert found.allows(SITE + "/else")


def test_wildcards_beyond_the_limit_count_by_what_stands_before_them() -> None:
    many = b"".join(b"allow: /*x%d\n" % number for number in range(MAX_WILDCARDS))
    found = read(b"user-agent: *\n" + many + b"disallow: /shop/*?sort=\nallow: /shop/*?sort=up\n", 0)
    assert not found.allows(SITE + "/shop/all?sort=up")
    assert not found.allows(SITE + "/shop/all")
    assert found.allows(SITE + "/shops")


def test_a_group_never_has_more_than_its_limits() -> None:
    lines = (b"disallow: /%d/*x*%d\nallow: /%d$\n" % (n, n, n) for n in range(30_000))
    found = read(b"user-agent: *\n" + b"".join(lines), 0)
    group = found.group.split("\n")
    assert sum(line[0] in "+-" for line in group) <= MAX_RULES
    assert sum(line[0] == "!" for line in group) <= MAX_WIDENED + 1
    assert sum(line.count("*") for line in group) <= MAX_WILDCARDS


@given(st.lists(st.tuples(st.booleans(), st.text("ab/*$", max_size=6)), max_size=12), st.text("ab/", max_size=8))
def test_small_limits_allow_nothing_that_the_file_forbids(rules: list[tuple[bool, str]], path: str) -> None:
    lines = [(allow, "/" + pattern) for allow, pattern in rules]
    url = f"{SITE}/{path}"
    whole = Robots(group_text(lines), 1.0)
    allowed = whole.allows(url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_matching, "MAX_STEPS", 3)
        assert allowed or not whole.allows(url)
        patch.setattr(robots_matching, "MAX_RULES", 3)
        patch.setattr(robots_matching, "MAX_WILDCARDS", 2)
        patch.setattr(robots_matching, "MAX_WIDENED", 2)
        bounded = Robots(group_text(lines), 1.0)
        assert allowed or not bounded.allows(url)
    assert allowed or not bounded.allows(url)


def test_a_url_too_long_to_compare_is_forbidden_by_what_stands_before_wildcards() -> None:
    rules = b"".join(b"disallow: /shop/*" + b"a" * 45 + b"b%d" % number + b"a" * 45 + b"\n" for number in range(900))
    found = read(b"user-agent: *\n" + rules + b"allow: /shop/*\n", 0)
    assert found.allows(SITE + "/shop/" + "a" * 40)
    assert not found.allows(SITE + "/shop/" + "a" * 8_000)
    assert "too long" in found.explain(SITE + "/shop/" + "a" * 8_000)
    assert found.allows(SITE + "/else/" + "a" * 8_000)


ENDS = [
    "a" * 4_000,
    "".join(f"&filter_colour_{number % 999:03}=red+shoes%20" for number in range(150)),
    "".join(f"{number * 7919 % 1_000_003:x}/" for number in range(700)),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("size", [1_500, 4_000])
@pytest.mark.parametrize("rules", [200, 500])
def test_the_filters_of_a_shop_forbid_no_other_long_url(rules: int, size: int, end: str) -> None:
    filters = "".join(f"Disallow: /*?filter_attribute_{number:03}=\n" for number in range(rules))
    found = read(f"User-agent: *\nAllow: /\n{filters}".encode(), 0)
    url = f"{SITE}/search?q={end}"[:size]
    assert found.allows(url)
    assert found.explain(url) == "Allow: /"
    assert found.explain(f"{SITE}/search?filter_attribute_123={end}"[:size]) == "Disallow: /*?filter_attribute_123="


def test_rules_that_start_otherwise_cost_a_long_url_nothing() -> None:
    slow = "".join(f"Disallow: /shop/*{'a' * 45}b{number}{'a' * 45}\n" for number in range(900))
    found = read(f"User-agent: *\n{slow}Disallow: /news/*?page=".encode(), 0)
    assert found.allows(SITE + "/news/" + "a" * 8_000)
    assert found.explain(SITE + "/news/" + "a" * 8_000 + "?page=7") == "Disallow: /news/*?page="


def slowly(rules: list[tuple[bool, str]], path: str) -> bool:
    """The decision of RFC 9309, with all places where a pattern may have come to after each of its letters."""
    best = (0, True)
    for allow, pattern in rules:
        ends = {0}
        for letter in pattern.removesuffix("$"):
            if letter != "*":
                ends = {at + 1 for at in ends if path[at : at + 1] == letter}
            elif ends:
                ends = set(range(min(ends), len(path) + 1))
        if len(path) in ends or (ends and not pattern.endswith("$")):
            best = max(best, (len(pattern), allow))
    return best[1]


LONG_PIECES = st.lists(st.sampled_from(["*", "/", "a", "b", "ab", "?", "aaab", "?a=", "ba" * 9]), max_size=6)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.booleans(), LONG_PIECES.map("".join), st.sampled_from(["", "$"])), max_size=9),
    st.lists(st.sampled_from(["a", "b", "/", "?a=", "ab" * 30, "a" * 90]), max_size=9).map("".join),
    st.integers(0, 20_000),
)
def test_a_slow_matcher_says_the_same(lines: list[tuple[bool, str, str]], path: str, steps: int) -> None:
    """With too few steps, a path may be forbidden that is not, but never the reverse."""
    rules = [(allow, f"/{pattern}{end}") for allow, pattern, end in lines]
    expected = slowly(rules, f"/{path}")
    found = Robots(group_text(rules), 1.0)
    assert found.allows(f"{SITE}/{path}") is expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_matching, "MAX_STEPS", steps)
        assert expected or not found.allows(f"{SITE}/{path}")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h/a#b", "/a"),
        ("http://h/%7ea%2f", "/~a%2F"),
        ("http://h/%zz%", "/%zz%"),
    ],
)
def test_comparable_paths(url: str, path: str) -> None:
    assert comparable_path(url) == path


PIECES = st.sampled_from(["/", "a", "b", "ab", "*", "$", ".", "?"])
PATTERNS = (
    st.lists(PIECES, min_size=1, max_size=6)
    .map(lambda pieces: "/" + "".join(pieces))
    .filter(lambda pattern: "$" not in pattern[:-1] and "**" not in pattern)
)


def as_protego_counts(rule: tuple[bool, str]) -> int:
    """It takes the length of a rule after it has written `?` as `%3F`."""
    return len(rule[1].replace("?", "%3F"))


def as_written(rule: tuple[bool, str]) -> int:
    return len(rule[1])


RULES = st.lists(
    st.tuples(st.booleans(), PATTERNS), min_size=1, max_size=5, unique_by=(as_written, as_protego_counts)
).filter(lambda rules: sorted(rules, key=as_written) == sorted(rules, key=as_protego_counts))
PATHS = st.lists(st.sampled_from(["/", "a", "b", "ab", ".", "?"]), max_size=7).map(lambda pieces: "/" + "".join(pieces))


@settings(max_examples=300)
@given(RULES, PATHS)
def test_protego_is_of_the_same_opinion(rules: list[tuple[bool, str]], path: str) -> None:
    """Left to the tables above: rules of one length, lengths that `?` decides, `$` in the middle and `**`.

    Protego takes these in its own way.
    """
    text = "User-agent: *\n" + "".join(f"{'Allow' if allow else 'Disallow'}: {pattern}\n" for allow, pattern in rules)
    assert allowed(text, path) == Protego.parse(text).can_fetch(SITE + path, "silkline")


@given(st.binary(max_size=300))
def test_no_file_breaks_the_reader(body: bytes) -> None:
    found = robots.read(b"User-agent: *\nDisallow: " + body, 0.0)
    assert found.allows(SITE + "/") in (True, False)

"""Patterns of users: matched in linear time, or refused with a reason that names the place."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import SpecError, UsageError
from silkline.export.rows import Filter
from silkline.model.pattern import MAX_LENGTH, MAX_PATTERNS, BadPattern, UrlPattern, compile_patterns
from silkline.model.spec import SiteSpec, validate

SLOW_IN_PYTHON = [
    (r"(a+)+$", "a" * 5000 + "!"),
    (r"(x+x+)+y", "x" * 5000),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5000),
    (r"(.*)*(.*)*(.*)*z", "a" * 5000),
    (r"(a|aa)+$", "a" * 5000 + "b"),
    (r"(a|a?)+b", "a" * 5000),
    (r"/(\w+/?)+\.html$", "/" + "a" * 5000),
]


@pytest.mark.parametrize(("pattern", "url"), SLOW_IN_PYTHON)
def test_no_pattern_takes_more_than_linear_time(pattern: str, url: str) -> None:
    """With Python's engine each of these runs until the time limit of the tests ends it."""
    assert not UrlPattern(pattern).found_in(url)


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        (r"/(?=docs)", "look-around, which is not supported: (?= at character 2"),
        (r"a(?!b)", "look-around, which is not supported: (?! at character 2"),
        (r"(?<=a)b", "look-around, which is not supported: (?<= at character 1"),
        (r"(?<!a)b", "look-around, which is not supported: (?<! at character 1"),
        (r"(a)\1", r"a back-reference, which is not supported: \1 at character 4"),
        (r"(?P<x>a)(?P=x)", "a back-reference, which is not supported: (?P= at character 9"),
        (r"(?>a)", "an atomic group, which is not supported: (?> at character 1"),
        (r"a*+b", "a possessive quantifier, which is not supported: *+ at character 2"),
        (r"(a)?(?(1)b|c)", "a conditional group, which is not supported: (?( at character 5"),
        ("[", "is not a regular expression: missing ]"),
        ("(", "is not a regular expression: missing )"),
        ("(" * 2000 + ")" * 2000, f"is longer than {MAX_LENGTH} characters"),
        ("a{1000}b{1000}", "is too large"),
        ("((a{30}){30}){30}", "is"),
    ],
)
def test_what_cannot_be_matched_is_refused_with_its_place(pattern: str, complaint: str) -> None:
    with pytest.raises(BadPattern) as refused:
        UrlPattern(pattern)
    assert complaint in str(refused.value)
    with pytest.raises(SpecError, match=r"include\.0: "):
        validate(SiteSpec, {"url": "http://a.test/", "include": [pattern]})
    with pytest.raises(UsageError, match="--match"):
        Filter(match=pattern)


@pytest.mark.parametrize("pattern", [r"[(?=]", r"\(?=", r"[\]*+]", r"[]*+]", r"\\1", "(" * 400 + "a" + ")" * 400])
def test_what_only_looks_unsupported_is_taken(pattern: str) -> None:
    UrlPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        (r"a{,3}b\Z", "xaab"),
        (r"^https?://[^/]+/(?:docs|blog)/", "https://a.test/blog/1"),
        (r"(?i)\.PDF$", "/x.pdf"),
        ("é", "/é"),
    ],
)
def test_patterns_of_before_still_match(pattern: str, url: str) -> None:
    assert re.search(pattern, url)
    assert UrlPattern(pattern).found_in(url)


def test_patterns_are_bounded_in_number_and_together() -> None:
    with pytest.raises(SpecError, match="exclude"):
        validate(SiteSpec, {"url": "http://a.test/", "exclude": ["a"] * (MAX_PATTERNS + 1)})
    with pytest.raises(BadPattern, match="together"):
        compile_patterns(["a{900}"] * 6)
    with pytest.raises(SpecError, match=r"include: .*together"):
        validate(SiteSpec, {"url": "http://a.test/", "include": ["a{900}"] * 6})


@given(st.text(alphabet="ab()[]{}?*+|\\^$.,=!<>P:19#-", max_size=30), st.text(alphabet="ab/.", max_size=20))
def test_any_text_is_refused_cleanly_or_means_what_it_means_in_python(text: str, url: str) -> None:
    try:
        pattern = UrlPattern(text)
    except BadPattern:
        return
    found = pattern.found_in(url)
    try:
        python = re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return
    assert found == (python.search(url) is not None)


def test_the_command_refuses_a_bad_pattern_before_a_job_exists(tmp_path: object) -> None:
    command = [
        sys.executable,
        "-m",
        "silkline",
        "--data",
        str(tmp_path),
        "crawl",
        "http://a.test/",
        "--include",
        "(?=a)",
    ]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "look-around" in done.stderr
    assert "Traceback" not in done.stderr

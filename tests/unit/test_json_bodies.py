"""JSON bodies of the API: strict, bounded, and read in one pass."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.api import json_structure
from silkline.api.bodies import parse
from silkline.api.json_structure import MOST_CONTAINERS, MOST_VALUES, check_size
from silkline.api.problems import Problem
from silkline.model.strict_json import MOST_DEPTH, BadJson, _each_once

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


class Watched(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Watched.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5))
def test_what_json_can_say_is_read_as_it_stands(value: dict[str, Any]) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


def test_a_name_that_stands_twice_is_found_in_one_pass() -> None:
    pairs = [(Watched(f"name {number}"), 1) for number in range(20_000)] + [(Watched("name 19999"), 1)]
    Watched.compared = 0
    with pytest.raises(BadJson, match="contains the name 'name 19999' twice"):
        _each_once(pairs, "the body")
    assert Watched.compared < 100_000, "not one comparison for each pair of names"


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b'{"a": [' + b"{}," * MOST_CONTAINERS + b"{}]}", "too-large", "objects and lists"),
        (b'{"a": [' + b"[]," * MOST_CONTAINERS + b"[]]}", "too-large", "objects and lists"),
        (b'{"a": [' + b'"x",' * MOST_VALUES + b'"x", "y"]}', "too-large", "values"),
        (b'{"a": ' + b"[" * MOST_DEPTH + b"]" * MOST_DEPTH + b"}", "bad-request", "nested too deeply"),
        (b'{"a": ' + b"[" * 90_000 + b"]" * 90_000 + b"}", "bad-request", "nested too deeply"),
        (b'{"a": {"b": [1e999]}}', "bad-request", "too large"),
        (b'{"a": -1e999}', "bad-request", "too large"),
        (b'{"a": [99999999999999999999]}', "bad-request", "63 bits"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "bad-request", "not JSON"),
        (b'{"a": NaN}', "bad-request", "not JSON"),
        (b'{"a": "\\ud83d"}', "bad-request", "half of a surrogate pair"),
        (b'{"a": "\xff"}', "bad-request", "not UTF-8"),
        (b'{"a": {"b": 1, "b": 2}}', "bad-request", "contains the name 'b' twice"),
        (b"[]", "bad-request", "must be a JSON object"),
    ],
    ids=str,
)
def test_what_is_refused(body: bytes, kind: str, words: str) -> None:
    with pytest.raises(Problem) as caught:
        parse(body)
    assert caught.value.kind == kind
    assert words in caught.value.detail


def test_what_is_just_allowed() -> None:
    assert len(parse(b'{"a": [' + b'"x",' * (MOST_VALUES - 1) + b'"x"]}')["a"]) == MOST_VALUES
    assert parse(b'{"a": ' + b"[" * (MOST_DEPTH - 1) + b"]" * (MOST_DEPTH - 1) + b"}")
    assert parse(b'{"a": 9223372036854775807, "b": "\\ud83d\\ude00"}')["b"] == "\N{GRINNING FACE}"


def test_text_inside_strings_does_not_count() -> None:
    text = 'He said: "[{,' * MOST_VALUES
    assert parse(json.dumps({"a": text}).encode())["a"] == text


@given(st.lists(st.text(alphabet='\\",[{a', max_size=20), max_size=20))
def test_separators_are_counted_outside_of_strings_only(texts: list[str]) -> None:
    body = json.dumps({text: [text, text] for text in texts}).encode()
    before = json_structure._BLOCK
    json_structure._BLOCK = 7  # type: ignore[misc]
    try:
        outside = b"".join(json_structure._outside_of_strings(body))
    finally:
        json_structure._BLOCK = before  # type: ignore[misc]
    names = len(dict.fromkeys(texts))
    assert outside.count(b",") == max(0, names - 1) + names
    assert outside.count(b"[") == names
    check_size(body)

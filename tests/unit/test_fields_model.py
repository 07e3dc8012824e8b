"""What a user writes about fields: read in every form, and refused with the place of every error."""

import difflib
from typing import Any

import pytest

from silkline.model.fields import BadFields, Field, as_table, inline_field, read_fields


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("h1", Field("x", "css", "h1")),
        ("h1::text", Field("x", "css", "h1")),
        ("a.more::attr(href)", Field("x", "css", "a.more", "href")),
        ("//h1/text()", Field("x", "xpath", "//h1/text()")),
        ("./b", Field("x", "xpath", "./b")),
        ("xpath: count(//li)", Field("x", "xpath", "count(//li)")),
        ("json-ld:Product.offers.price", Field("x", "json_ld", "Product.offers.price")),
        ("microdata:Product.name", Field("x", "microdata", "Product.name")),
        ("og:title", Field("x", "opengraph", "og:title")),
        ("meta:description", Field("x", "meta", "description")),
    ],
)
def test_a_short_form_is_a_source_and_a_path(text: str, field: Field) -> None:
    assert read_fields({"x": text}) == (field,)


def test_a_table_has_every_option() -> None:
    options = {"regex": r"(\d+)", "many": True, "type": "number", "required": True, "default": [1], "when": "/p/"}
    (field,) = read_fields({"n": {"css": ".n", "attribute": "data-n", **options}})
    assert field == Field("n", "css", ".n", "data-n", r"(\d+)", True, "number", True, [1], "/p/")
    assert read_fields(as_table((field,))) == (field,)


@pytest.mark.parametrize("default", [0, False, 0.0])
def test_a_default_that_is_zero_or_false_stays(default: Any) -> None:
    kind = "boolean" if default is False else "number"
    (field,) = read_fields({"n": {"css": "n", "type": kind, "default": default}})
    assert as_table((field,))["n"]["default"] is default


@pytest.mark.parametrize(
    ("fields", "place", "words"),
    [
        ({"a": "h1["}, "a.css", "not a CSS selector: expected an identifier at position 3"),
        ({"a": ".x:foo"}, "a.css", "unknown pseudo-class"),
        ({"a": ""}, "a.css", "is empty"),
        ({"a": "x" * 1001}, "a.css", "longer than 1000"),
        ({"a": "//li["}, "a.xpath", "not an XPath"),
        ({"a": "//li[nothing(.)]"}, "a.xpath", ""),
        ({"a": "//li[$x]"}, "a.xpath", ""),
        ({"a": "//*[" * 12 + "x" + "]" * 12}, "a.xpath", "too complex"),
        ({"a": "//*" + "[//*=//*]" * 5}, "a.xpath", "too complex"),
        ({"a": {"xpath": "//a[re:test(., 'x')]"}}, "a.xpath", "key regex"),
        ({"a": {"css": "p", "regex": "("}}, "a.regex", "not a regular expression"),
        ({"a": {"css": "p", "regex": "(?=x)"}}, "a.regex", "look-around"),
        ({"a": {"css": "p", "regex": "((a{100}){100}){100}"}}, "a.regex", ""),
        ({"a": {"css": "p", "when": "["}}, "a.when", "not a regular expression"),
        ({"a": {"css": "p", "typ": "text"}}, "a.typ", "did you mean 'type'"),
        ({"a": {"css": "p", "type": "prize"}}, "a.type", "did you mean 'price'"),
        ({"a": {"css": "p", "type": ["text"]}}, "a.type", "unknown type"),
        ({"a": {"css": "p", "many": "yes"}}, "a.many", "true or false"),
        ({"a": {"css": "p", "required": 1}}, "a.required", "true or false"),
        ({"a": {"css": 5}}, "a.css", "must be text"),
        ({"a": {"css": "p", "attribute": 5}}, "a.attribute", "must be text"),
        ({"a": {"css": "p", "type": "number", "default": "x"}}, "a.default", "type number"),
        ({"a": {"css": "p", "default": True}}, "a.default", "type text"),
        ({"a": {"css": "p", "many": True, "default": "x"}}, "a.default", "type text"),
        ({"a": {"meta": "x", "attribute": "y"}}, "a.attribute", "only an element"),
        ({"a": {"json_ld": "Product..name"}}, "a.json_ld", "not a path"),
        ({"a": {}}, "a", "exactly one of css"),
        ({"a": {"css": "p", "xpath": "//p"}}, "a", "css and xpath"),
        ({"a": 5}, "a", "must be a selector"),
        ({"1a": "p"}, "1a", "not a name"),
        ({"a b": "p"}, "a b", "not a name"),
        ({"a": {"css": "p", "type": "price"}, "a_currency": "p"}, "a_currency", "both need the column a_currency"),
        ({f"f{number}": "p" for number in range(101)}, "", "more than 100"),
        ({f"f{number}": "p" * 999 for number in range(100)} | {"f0": "q" * 2000}, "", "larger than"),
        (["h1"], "", "must be a table"),
    ],
)
def test_every_error_has_its_place(fields: Any, place: str, words: str) -> None:
    with pytest.raises(BadFields) as caught:
        read_fields(fields)
    assert [at for at, _ in caught.value.problems] == [place]
    assert words in caught.value.problems[0][1]


def test_all_errors_are_told_at_once() -> None:
    with pytest.raises(BadFields) as caught:
        read_fields({"a": "h1[", "b": {"css": "p", "type": "x"}, "c": "h2"}, each="li[")
    assert [place for place, _ in caught.value.problems] == ["each", "a.css", "b.type"]


def test_rows_need_fields() -> None:
    with pytest.raises(BadFields, match="each: needs at least one field"):
        read_fields({}, each="li")


@pytest.mark.parametrize("depth", [10, 400])
def test_a_deeply_nested_selector_is_no_crash(depth: int) -> None:
    for text in (":not(" * (depth // 4) + "a" + ")" * (depth // 4), "//a" + "[a" * depth + "]" * depth):
        try:
            read_fields({"a": text})
        except BadFields:
            assert depth == 400


def test_fields_of_a_command_line() -> None:
    assert inline_field("name=h1::text") == ("name", {"css": "h1::text"})
    assert inline_field("link:url=a[rel=next]") == ("link", {"css": "a[rel=next]", "type": "url"})
    with pytest.raises(BadFields, match="NAME=SELECTOR"):
        inline_field("h1")


def test_very_many_unknown_keys_are_refused_without_a_suggestion_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suggestion takes 60 µs, and 100,000 characters are 8,000 keys."""
    asked: list[str] = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda word, *_, **__: asked.append(word) or [])
    with pytest.raises(BadFields, match="has 5,000 unknown keys") as error:
        read_fields({"price": {"css": "p", **{f"requird{number}": 0 for number in range(5_000)}}})
    assert len(error.value.problems) == 1
    assert asked == []
    with pytest.raises(BadFields) as error:
        read_fields({f"f{name}": {"css": "p", **{f"requird{n}": 0 for n in range(10)}} for name in range(100)})
    assert len(error.value.problems) == 20
    assert len(asked) <= 20

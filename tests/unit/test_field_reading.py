"""Fields of pages of our own writing: every source, every way a field can be wrong, and the limits."""

import json
from typing import Any

import msgspec
import pytest
from turbohtml import parse

from silkline.model.fields import read_fields
from silkline.parse import fields as module
from silkline.parse import structured as structured_module
from silkline.parse.fields import FOUND, MISSING, NOT_ASKED, WRONG, FieldReader
from silkline.parse.json_size import beginning
from silkline.parse.microdata import microdata_of
from silkline.parse.structured import Structured, at_path

URL = "https://shop.example/product/7"
PAGE = """<html><head><title>Lamp</title>
<meta name="description" content="A lamp"><meta property="og:title" content="The lamp">
<meta property="product:price:amount" content="19.90"><meta property="product:price:currency" content="SEK">
<script type="application/ld+json">{"@graph": [{"@type": ["Product"], "name": "Lamp LD", "sku": 77,
 "brand": {"@type": "Brand", "name": "Lux"}, "offers": [{"@type": "Offer", "price": "1299.00", "priceCurrency": "EUR",
 "availability": "https://schema.org/InStock"}]}]}</script>
<script type="application/ld+json">{broken</script></head><body>
<h1>Desk  <b>lamp</b></h1><p class="price">1.299,00 €</p><p class="stock">In stock</p>
<a class="more" href="../about">About</a><img src="/lamp.png"><time datetime="2024-05-06T07:08:09Z">last spring</time>
<ul><li class="tag">red<li class="tag">new</ul><p class="codes">EAN: 123, EAN: 456</p><p class="empty"> </p>
<div itemscope itemtype="https://schema.org/Product"><span itemprop="name">Lamp MD</span>
<div itemprop="offers" itemscope itemtype="https://schema.org/Offer"><meta itemprop="price" content="12.5">
<meta itemprop="priceCurrency" content="USD"></div></div></body></html>"""


def read(fields: dict[str, Any], page: str = PAGE, each: str = "", url: str = URL) -> tuple[dict[str, Any], bytes]:
    return FieldReader(read_fields(fields, each or None), each).read(parse(page), url, url)


def one(field: Any, page: str = PAGE) -> Any:
    data, tally = read({"x": field}, page)
    assert tally == bytes([FOUND]), data
    assert "field_errors" not in data
    return data["fields"]["x"]


def test_defaults_count_as_values_of_the_page() -> None:
    fields = {
        "x": {"css": ".none", "default": 50_000 * "x"},
        "y": {"css": ".none", "many": True, "default": ["a", "b"]},
    }
    data, _ = read(fields, "<p>x" * module.MAX_ROWS, "p")
    assert len(data["rows"]) == module.MAX_ROWS
    assert data["rows"][0] == {"x": 50_000 * "x", "y": ["a", "b"]}
    assert data["rows"][-1] == {"x": None, "y": []}
    assert len(json.dumps(data)) < 2 * module.MAX_CHARACTERS
    assert {"field": "x", "error": "too_large", "raw": None, "row": 21} in data["field_errors"]


def test_a_pattern_that_matches_everywhere_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found at each place of the text, after a look at the whole rest of it."""
    clock = iter(range(1_000_000))
    monkeypatch.setattr(module.time, "process_time", lambda: next(clock) / 1_000)
    name = json.dumps({"@type": "Product", "name": "x " * 100_000})
    page = f"<script type=application/ld+json>{name}</script>"
    data, _ = read({"x": {"json_ld": "Product.name", "regex": r"(\d*)\s*(?:[\w\s]*kg)?", "many": True}}, page)
    assert data == {"fields": {"x": []}, "field_errors": [{"field": "x", "error": "time", "raw": None}]}
    assert next(clock) < 5_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("h1", "Desk lamp"),
        ("h1::text", "Desk lamp"),
        ("a.more::attr(href)", "../about"),
        ({"css": "a.more", "type": "url"}, "https://shop.example/about"),
        ({"css": "img", "type": "url"}, "https://shop.example/lamp.png"),
        ({"css": "time", "type": "date"}, "2024-05-06T07:08:09+00:00"),
        ({"css": "time"}, "last spring"),
        ({"css": ".stock", "type": "boolean"}, True),
        ({"css": ".tag", "many": True}, ["red", "new"]),
        ({"css": ".price", "type": "number"}, 1299.0),
        ({"css": ".codes", "regex": r"EAN: (\d+)", "type": "number"}, 123),
        ({"css": ".codes", "regex": r"\d+", "many": True}, ["123", "456"]),
        ({"css": "meta[name=description]"}, "A lamp"),
        ("//h1/b/text()", "lamp"),
        ("//a/@href", "../about"),
        ({"xpath": "count(//li)", "type": "number"}, 2),
        ({"xpath": "//a", "attribute": "class"}, "more"),
        ({"xpath": "count(//li) > 1", "type": "boolean"}, True),
        ("json-ld:Product.name", "Lamp LD"),
        ("json-ld:Product.brand", "Lux"),
        ("json-ld:name", "Lamp LD"),
        ({"json_ld": "Product.sku", "type": "number"}, 77),
        ("json-ld:Product.sku", "77"),
        ({"json_ld": "Offer.availability", "type": "boolean"}, True),
        ({"json_ld": "Product.name", "regex": r"(L\w)"}, "La"),
        ("microdata:Product.name", "Lamp MD"),
        ("og:title", "The lamp"),
        ("opengraph:title", "The lamp"),
        ("meta:description", "A lamp"),
    ],
)
def test_every_source_and_type(field: Any, value: Any) -> None:
    assert one(field) == value


@pytest.mark.parametrize(
    ("field", "amount", "currency"),
    [
        ({"css": ".price"}, 1299.0, "EUR"),
        ({"json_ld": "Product.offers.price"}, 1299.0, "EUR"),
        ({"json_ld": "Product.offers"}, 1299.0, "EUR"),
        ({"microdata": "Offer.price"}, 12.5, "USD"),
        ({"opengraph": "product:price:amount"}, 19.9, "SEK"),
        ({"json_ld": "Product.sku"}, 77, None),
    ],
)
def test_a_price_has_its_currency(field: dict[str, str], amount: float, currency: str | None) -> None:
    data, _ = read({"p": {**field, "type": "price"}})
    assert data["fields"] == {"p": amount, "p_currency": currency}


def test_many_prices_have_many_currencies() -> None:
    data, _ = read({"p": {"css": "i", "type": "price", "many": True}}, "<i>1 €</i><i>$2</i>")
    assert data["fields"] == {"p": [1, 2], "p_currency": ["EUR", "USD"]}


@pytest.mark.parametrize(
    ("field", "error", "raw"),
    [
        ({"css": "h1", "type": "number"}, "not_a_number", "Desk lamp"),
        ({"css": ".codes", "type": "price"}, "several_numbers", "EAN: 123, EAN: 456"),
        ({"css": "h1", "type": "date"}, "not_a_date", "Desk lamp"),
        ({"css": "h1", "type": "boolean"}, "not_a_boolean", "Desk lamp"),
        ({"css": "a", "attribute": "class", "type": "url", "regex": "$"}, None, None),
    ],
)
def test_what_does_not_convert_leaves_its_text(field: dict[str, Any], error: str | None, raw: str | None) -> None:
    data, tally = read({"x": field, "name": "h1"})
    assert data["fields"]["name"] == "Desk lamp"
    assert data["fields"]["x"] is None
    if error is None:
        assert tally == bytes([MISSING, FOUND])
    else:
        assert data["field_errors"] == [{"field": "x", "error": error, "raw": raw}]
        assert tally == bytes([WRONG, FOUND])


def test_of_many_values_the_good_ones_stay() -> None:
    data, tally = read({"n": {"css": "i", "type": "number", "many": True}}, "<i>1 of 3</i><i>x</i><i>2</i>")
    assert data["fields"]["n"] == [2]
    assert [each["raw"] for each in data["field_errors"]] == ["1 of 3", "x"]
    assert tally == bytes([FOUND])


def test_what_is_missing() -> None:
    fields = {
        "optional": ".none",
        "needed": {"css": ".none", "required": True},
        "usual": {"css": ".none", "default": "green"},
        "several": {"css": ".none", "many": True},
        "cost": {"css": ".none", "type": "price"},
        "blank": ".empty",
        "no_attribute": "h1::attr(id)",
        "elsewhere": {"css": "h1", "when": "/category/"},
    }
    data, tally = read(fields)
    nothing = {"optional": None, "needed": None, "cost": None, "cost_currency": None, "blank": None}
    assert data["fields"] == {**nothing, "usual": "green", "several": [], "no_attribute": None}
    assert data["field_errors"] == [{"field": "needed", "error": "missing", "raw": None}]
    assert tally == bytes([MISSING] * 7 + [NOT_ASKED])


def test_a_page_that_no_field_is_for_has_none() -> None:
    assert read({"x": {"css": "h1", "when": "/category/"}}) == ({}, bytes([NOT_ASKED]))


def test_rows() -> None:
    page = """<ul><li class=p data-id=1><b>One</b><i>5 €</i><li class=p data-id=2><b>Two</b><i>?</i></ul>
    <h1>All</h1><li><b>no row</b>"""
    fields = {"name": "b", "price": {"css": "i", "type": "price"}, "id": ":scope::attr(data-id)", "head": "//h1"}
    data, tally = read(fields, page, each="li.p")
    assert data["rows"] == [
        {"name": "One", "price": 5, "price_currency": "EUR", "id": "1", "head": "All"},
        {"name": "Two", "price": None, "price_currency": None, "id": "2", "head": "All"},
    ]
    assert data["field_errors"] == [{"field": "price", "error": "not_a_number", "raw": "?", "row": 2}]
    assert tally == bytes([FOUND] * 4)
    assert read(fields, "<p>", each="li.p") == ({"rows": []}, bytes([MISSING] * 4))


def test_the_number_of_values_and_rows_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VALUES", 3)
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    data, _ = read({"x": {"css": "i", "many": True}}, "<i>1</i>" * 5)
    assert data["fields"]["x"] == ["1"] * 3
    assert data["field_errors"][0]["error"] == "too_many"
    data, _ = read({"x": "i"}, "<p><i>1</i></p>" * 5, each="p")
    assert len(data["rows"]) == 2
    assert data["field_errors"][0]["error"] == "too_many"


def test_the_size_of_all_values_is_limited() -> None:
    page = "<div>" * 300 + "x" * 9_000
    data, _ = read({"x": {"css": "div", "many": True}, "y": "div"}, page)
    assert len(data["fields"]["x"]) < 150
    assert data["fields"]["y"] is None
    assert {(each["field"], each["error"]) for each in data["field_errors"]} == {("x", "too_large"), ("y", "too_large")}
    assert len(one("div", "<div>" + "x" * 50_000)) == module.MAX_TEXT


def test_the_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", -1)
    data, _ = read({"x": "h1"})
    assert data == {"fields": {"x": None}, "field_errors": [{"field": "x", "error": "time", "raw": None}]}


@pytest.mark.parametrize(
    "page",
    [
        "<div itemscope itemprop=a>" * 20_000,
        "<div itemscope id=a itemref=b></div><div itemscope itemprop=x id=b itemref=a></div>",
        "".join(
            f"<p itemscope id=i{n} itemprop=c itemref='i{n + 1} j{n + 1}'></p>"
            f"<p itemscope id=j{n} itemprop=c itemref='i{n + 1} j{n + 1}'></p>"
            for n in range(40)
        )
        + "<div itemscope itemref=i0></div>",
        "<div itemscope>" + "<p itemprop='a b c'>x" * 50_000,
    ],
    ids=["nested", "circle", "doubling", "many"],
)
def test_hostile_microdata_ends(page: str) -> None:
    """turbohtml's own reader needs minutes for the third of these."""
    assert len(str(microdata_of(parse(page)))) < 5_000_000


BOMB = (
    "<div itemscope itemtype='https://schema.org/Product'>"
    + "<div itemscope itemprop='@a @b @c @d @e @f @g @h @i @j'>" * 6
    + "<b itemprop=q>x</b>"
)


@pytest.mark.parametrize(
    "page",
    [
        BOMB,
        BOMB.replace("@", ""),
        "<div itemscope>" + f"<b itemprop='a b c d e f g h i j'>{'x' * 10_000}</b>" * 2_000,
        f"<div itemscope itemtype='{'x' * 10_000} y'></div>" * 1_900,
        "".join(f"<meta name=n{n} content='{chr(1) * 10_000}'>" for n in range(500)),
        f"<script type='application/ld+json'>\"{chr(1) * 400_000}\"</script>" * 2,
    ],
    ids=["at-names", "names", "long-values", "long-types", "control-characters", "json-ld"],
)
def test_a_small_page_has_no_huge_structured_data(page: str) -> None:
    """536 bytes became a result of 200 MB: each level repeated the one below it ten times."""
    structured = Structured(parse(page))
    assert len(msgspec.json.encode(structured.everything())) < 9_000_000
    data, _ = read({"x": {"microdata": "Product.@a"}, "y": {"microdata": "Product", "many": True}}, page)
    assert len(str(data)) < 100_000


def test_structured_data_that_is_too_large_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Structured(parse(PAGE)).everything()
    assert "truncated" not in whole
    monkeypatch.setattr(structured_module, "_MAX_BYTES", 300)
    cut = Structured(parse(PAGE)).everything()
    assert cut["truncated"] is True
    assert cut["json_ld"][0]["@graph"][0]["name"] == "Lamp LD"
    assert cut["meta"] == {}
    assert len(msgspec.json.encode(cut)) < 400


def test_a_property_cannot_replace_the_type_of_its_item() -> None:
    page = "<div itemscope itemtype='https://schema.org/Product'><b itemprop='@type name'>x</b></div>"
    assert microdata_of(parse(page)) == [{"@type": "https://schema.org/Product", "name": ["x"]}]


@pytest.mark.parametrize("value", [{"a": [1, {"b": "\u00fc\n"}]}, [], [[1, 2], 3.5, None, True]])
def test_the_beginning_of_a_value_is_that_of_its_json(value: Any) -> None:
    whole = json.dumps(value, ensure_ascii=False)
    assert [beginning(value, length) for length in range(1, 40)] == [whole[:length] for length in range(1, 40)]


def test_hostile_json_ld_ends() -> None:
    blocks = [
        "[" * 100_000,
        "{" * 100,
        '{"a":' * 80 + "1" + "}" * 80,
        '{"@type": "Product", "name": "\\u0000\\ud800ok"}',
    ]
    page = "".join(f'<script type="application/ld+json">{block}</script>' for block in blocks)
    assert [found.value for found in Structured(parse(page)).at("json_ld", "Product.name")] == ["?ok"]
    wide = [{"@type": "A", "b": [[n] * 10 for n in range(10_000)]}]
    assert 1 < len(list(at_path(wide, "A.b"))) < 25_000


def test_a_selector_that_fails_with_a_page_is_an_error() -> None:
    data, _ = read({"x": {"xpath": "sum(//b)", "type": "number"}}, "<b>x</b>")
    assert data["fields"]["x"] is None


@pytest.mark.parametrize("many", [True, False])
def test_a_long_base_does_not_make_a_large_result(many: bool) -> None:
    """Each short address becomes a long URL."""
    page = f"<base href='https://shop.example/{'x' * 8_000}/'>" + "<div><a href=1>one</a></div>" * 900
    field = {"css": "a", "type": "url", "many": many}
    url = f"https://shop.example/{'x' * 8_000}/"
    data, _ = FieldReader(read_fields({"x": field}, None if many else "div"), "" if many else "div").read(
        parse(page), url, url
    )
    assert len(str(data)) < 3_000_000
    assert {each["error"] for each in data["field_errors"]} == {"too_large"}


def test_a_whole_number_that_no_column_can_hold_becomes_a_fraction() -> None:
    page = '<script type="application/ld+json">{"@type": "Thing", "n": 9007199254740993}</script>'
    value = one({"json_ld": "n", "type": "number"}, page)
    assert isinstance(value, float)
    assert value == pytest.approx(9007199254740993)

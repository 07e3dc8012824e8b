"""Fields at the command line: a shop of 300 products becomes a typed table, and once more without a request."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.acceptance.conftest import Silkline
from tests.support.shop import PRODUCTS, Shop, in_stock, price_of

FIELDS = """
[fields]
name = { css = "h1", when = "/product/", required = true }
price = { css = ".price", type = "price", when = "/product/" }
stock = { css = ".stock", type = "boolean", when = "/product/" }
"""
MORE = FIELDS + 'colour = { css = ".colour", regex = "Colour: (\\\\w+)", when = "/product/" }\n'


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        yield shop


def products(path: Path) -> list[dict[str, object]]:
    return [row for row in pyarrow.parquet.read_table(path).to_pylist() if "/product/" in row["final_url"]]


def test_a_shop_becomes_a_table_and_once_more_without_a_request(silkline: Silkline, shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(FIELDS)
    (tmp_path / "more.toml").write_text(MORE)
    options = ("--fields", "shop.toml", "--keep-html", "--require-fields", "0.9", "--facts", "links")
    crawled = silkline("crawl", shop.url, *options, "--speed", "max", "--content", "none", "-o", "shop.parquet")
    assert crawled.code == 0, crawled
    assert f"price: found on {PRODUCTS} of {PRODUCTS} pages (100%)" in crawled.err
    assert f"HTML kept: {PRODUCTS + 16:,} pages" in crawled.err

    schema = pyarrow.parquet.read_schema(tmp_path / "shop.parquet")
    assert [schema.field(name).type for name in ("name", "price", "price_currency", "stock")] == [
        pyarrow.string(),
        pyarrow.float64(),
        pyarrow.string(),
        pyarrow.bool_(),
    ]
    found = {
        row["name"]: (row["price"], row["price_currency"], row["stock"]) for row in products(tmp_path / "shop.parquet")
    }
    assert found == {f"Lamp {n}": (price_of(n), "EUR", in_stock(n)) for n in range(1, PRODUCTS + 1)}

    before = sum(shop.requests.values())
    again = silkline("extract", "last", "--fields", "more.toml", "-o", "more.parquet")
    assert again.code == 0, again
    assert sum(shop.requests.values()) == before
    rows = products(tmp_path / "more.parquet")
    assert len(rows) == PRODUCTS
    assert {row["colour"] for row in rows} == {"red", "green", "blue"}
    assert all(row["price"] == found[row["name"]][0] for row in rows)
    assert "Light for a desk" in str(rows[0]["content"])

    links = silkline("results", "last", "--format", "links")
    assert links.code == 0, links


def test_links_and_filters(silkline: Silkline, shop: Shop, tmp_path: Path) -> None:
    field = ("--field", "price:price=.price", "--field", "sku=json-ld:Product.sku")
    crawled = silkline("crawl", f"{shop.url}list/15", "--limit", "21", "--speed", "max", "--facts", "all", *field)
    assert crawled.code == 0, crawled
    cheap = silkline("results", "last", "--where", "price<3800", "--where", "sku~L-028")
    assert [json.loads(line)["data"]["fields"]["sku"] for line in cheap.out.splitlines()] == [
        "L-0281",
        "L-0282",
        "L-0283",
        "L-0284",
    ]
    silkline("results", "last", "--where", "price<>3").refused(2, "--where", "price<20")
    rows = [json.loads(line) for line in silkline("results", "last", "--format", "links").out.splitlines()]
    assert set(rows[0]) == {"source", "target", "text", "rel", "state", "status"}
    assert {
        "source": f"{shop.url}list/15",
        "target": f"{shop.url}product/300",
        "text": "Lamp 300",
        "rel": "",
    }.items() <= next(row for row in rows if row["target"].endswith("/300")).items()
    assert silkline("results", "last", "--format", "links", "-o", "links.parquet").code == 0
    assert pyarrow.parquet.read_table(tmp_path / "links.parquet").num_rows == len(rows)
    chunks = silkline("results", "last", "--format", "chunks", "--chunk-size", "100", "--match", "product/285")
    parts = [json.loads(line) for line in chunks.out.splitlines()]
    assert {part["url"] for part in parts} == {f"{shop.url}product/285"}
    assert [part["position"] for part in parts] == list(range(len(parts)))
    assert any("Lamp 285" in part["text"] for part in parts)
    silkline("results", "last", "--chunk-size", "100").refused(2, "--chunk-size", "--format chunks")
    page = next(json.loads(line) for line in silkline("results", "last", "--match", "product/285").out.splitlines())
    assert page["data"]["headers"]["x-shop"] == "yes"
    assert page["data"]["images"] == [{"src": f"{shop.url}lamp.png", "alt": "Lamp 285"}]
    assert page["data"]["structured"]["json_ld"][0]["sku"] == "L-0285"


def test_trying_fields_on_one_page(silkline: Silkline, shop: Shop, tmp_path: Path) -> None:
    tried = silkline("fields", f"{shop.url}product/7", "--field", "name=h1", "--field", "price:price=.price", "--json")
    assert tried.code == 0, tried
    assert tried.json == {"fields": {"name": "Lamp 7", "price": price_of(7), "price_currency": "EUR"}}
    assert shop.requests["/product/7"] == 1
    plain = silkline(f"{shop.url}product/8", "--field", "name=h1")
    assert plain.json == {"fields": {"name": "Lamp 8"}}
    again = silkline("fields", f"{shop.url}product/7", "--field", "n:number=h1", "--field", "size=.size")
    assert again.code == 1
    assert "Not found: size." in again.err
    assert "From the stored page" in again.err
    wrong = silkline("fields", f"{shop.url}product/7", "--field", "stock:number=.stock")
    assert 'stock: not_a_number: "In stock"' in wrong.err
    silkline(f"{shop.url}product/8", "--field", "x=.no", "--require-fields", "1").refused(1, "x: found on 0 of 1 pages")
    proposed = silkline("fields", f"{shop.url}product/7", "--suggest")
    assert tomllib.loads(proposed.out)["fields"]["offers_price"] == {"json_ld": "Product.offers.price", "type": "price"}
    assert shop.requests["/product/7"] == 1
    rows = silkline("fields", f"{shop.url}list/2", "--suggest")
    (tmp_path / "rows.toml").write_text(rows.out)
    assert tomllib.loads(rows.out)["each"] == "li.card"
    tried = silkline("fields", f"{shop.url}list/2", "--fields", "rows.toml", "--json")
    assert tried.code == 0, (rows, tried)
    assert len(tried.json["rows"]) == 20
    assert {"name": "Lamp 21", "price": price_of(21)}.items() <= tried.json["rows"][0].items()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[fields]\nname = 'h1['", ("bad.toml: field name, css: is not a CSS selector", "position 3")),
        (
            "[fields]\nname = {css = 'h1', typ = 'text'}",
            ("bad.toml: field name, typ: unknown key", "did you mean 'type'"),
        ),
        ("[fields]\nname = {css = 'h1', type = 'x'}", ("bad.toml: field name, type: unknown type 'x'",)),
        ("each = 'li['\n[fields]\nname = 'h1'", ("bad.toml: each: is not a CSS selector",)),
        ("[name]\ncss = 'h1'", ("bad.toml: unknown key 'name'", "[fields]")),
        ("[fields]", ("bad.toml: it describes no field",)),
        ("[fields\n", ("bad.toml:", "line 1")),
    ],
)
def test_a_wrong_file_is_refused_before_a_job_is_stored(
    silkline: Silkline, tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "bad.toml").write_text(content)
    silkline("crawl", "https://example.com/", "--fields", "bad.toml").refused(2, *words)
    assert not (tmp_path / "data").exists() or silkline("jobs", "--json").json == []

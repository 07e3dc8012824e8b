"""Fields in the API and on the web page, on both databases."""

import json
from collections.abc import Iterator

import pytest

from tests.support.served import Client
from tests.support.shop import Shop, price_of

FIELDS = {
    "name": "h1",
    "price": {"css": ".price", "type": "price", "when": "/product/"},
    "stock": {"css": ".stock", "type": "boolean"},
}


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        yield shop


@pytest.fixture(scope="module")
def crawled(trusting: Client, shop: Shop) -> str:
    """A job that crawled one list and its 20 products."""
    id = trusting.job(
        kind="site",
        url=f"{shop.url}list/15",
        depth=1,
        speed="max",
        fields=FIELDS,
        keep_html=True,
        allow_private=["127.0.0.1"],
    )
    trusting.wait_for(id, "completed")
    return id


def test_the_job_says_on_how_many_pages_a_field_was_found(trusting: Client, crawled: str) -> None:
    progress = trusting.get(f"/v1/jobs/{crawled}").json["progress"]
    assert progress["fields"]["price"] == {"asked": 20, "found": 20, "wrong": 0}
    assert progress["fields"]["name"] == {"asked": 21, "found": 20, "wrong": 0}
    assert progress["html"]["pages"] == 21
    assert progress["html"]["stored"] < progress["html"]["raw"]


def test_results_are_filtered_by_fields(trusting: Client, crawled: str) -> None:
    path = f"/v1/jobs/{crawled}/results?limit=3&where=stock%3Dtrue&where=price%3E%3D3900"
    names, cursor = [], ""
    while True:
        page = trusting.get(f"{path}&cursor={cursor}" if cursor else path).json
        names += [item["data"]["fields"]["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    wanted = {f"Lamp {n}" for n in range(281, 301) if n % 3 and price_of(n) >= 3900}
    assert set(names) == wanted
    assert len(names) == len(wanted)
    lines = trusting.get(f"{path}&format=jsonl").text.splitlines()
    assert {json.loads(line)["data"]["fields"]["name"] for line in lines} == wanted
    trusting.get(f"/v1/jobs/{crawled}/results?where=price%3C%3E").problem(422, "invalid", "where", "price<20")


def test_wrong_fields_are_refused_with_their_place(trusting: Client) -> None:
    for fields, words in (
        ({"name": "h1["}, "fields: name.css: is not a CSS selector"),
        ({"name": {"css": "h1", "typ": "x"}}, "name.typ: unknown key"),
        ({"name": {"css": "h1", "type": "x"}}, "name.type: unknown type"),
        ([1], "fields"),
    ):
        body = {"kind": "site", "url": "https://example.com/", "fields": fields}
        trusting.post("/v1/jobs", body).problem(422, "invalid", words)
    body = {"kind": "page", "url": "https://example.com/", "each": "li"}
    trusting.post("/v1/jobs", body).problem(422, "invalid", "each needs fields")


def test_the_page_shows_a_table(trusting: Client, crawled: str) -> None:
    shown = trusting.get(f"/jobs/{crawled}/fields").text
    for words in ("price_currency", "on 20 of 20 pages", "Lamp 300", str(price_of(300)), "EUR"):
        assert words in shown
    few = trusting.get(f"/jobs/{crawled}/fields?q=name%3DLamp%20300").text
    assert "Lamp 300" in few
    assert "Lamp 299" not in few
    assert "is not a condition" in trusting.get(f"/jobs/{crawled}/fields?q=%3C%3C").text
    ids = trusting.get(f"/v1/jobs/{crawled}/results?where=name%3DLamp%20300").json["items"][0]
    assert '<section class="card wide" id="fields">' in trusting.get(f"/jobs/{crawled}/page/{ids['url_id']}").text


def test_links_are_an_export(trusting: Client, crawled: str, shop: Shop) -> None:
    answer = trusting.get(f"/v1/jobs/{crawled}/export?format=links")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    targets = {row["target"] for row in rows if row["source"].endswith("/list/15")}
    assert targets == {f"{shop.url}product/{n}" for n in range(281, 301)}
    assert {row["state"] for row in rows if "/product/" in row["target"]} == {"done"}


def test_an_extraction_is_a_job(trusting: Client, crawled: str, shop: Shop) -> None:
    before = sum(shop.requests.values())
    id = trusting.job(kind="extract", job=crawled, fields={"sku": "json-ld:Product.sku"}, content="none")
    trusting.wait_for(id, "completed")
    found = trusting.get(f"/v1/jobs/{id}/results?where=sku&limit=100").json["items"]
    assert {item["data"]["fields"]["sku"] for item in found} == {f"L-{n:04}" for n in range(281, 301)}
    assert sum(shop.requests.values()) == before

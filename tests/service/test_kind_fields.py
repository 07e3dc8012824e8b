"""Fields, kept HTML, extraction and page hooks in jobs, against a shop of our own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.model.field_counts import FieldCount, field_counts_in
from silkline.model.fields import as_table, read_fields
from silkline.model.kept_html import kept_html_in
from silkline.store import html, job_removal, urls
from tests.support.inline import Inline
from tests.support.plugins import install
from tests.support.shop import IN_A_LIST, Shop, price_of

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
HOOK = (HOW_TO / "page_hook.py").read_text()
PRIVATE = {"allow_private": ["127.0.0.0/8"], "speed": "max"}
SHORT = {"name": "h1", "price": {"css": ".price", "type": "price"}, "sku": "json-ld:Product.sku"}
FIELDS = as_table(read_fields(SHORT))


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    inline = Inline(tmp_path)
    yield inline
    inline.close()


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        yield shop


def live(inline: Inline) -> dict[str, object]:
    return urls.counts(inline.database, inline.job.id).live


def test_fields_and_rows_of_pages(inline: Inline, shop: Shop) -> None:
    (page,) = inline.run("page", url=f"{shop.url}product/7", fields=SHORT, **PRIVATE)
    expected = {"name": "Lamp 7", "price": price_of(7), "price_currency": "EUR", "sku": "L-0007"}
    assert page.data["fields"] == expected
    assert "Light for a desk" in page.data["markdown"]
    assert field_counts_in(live(inline))["price"] == FieldCount(1, 1, 0)
    (page,) = inline.run("page", url=f"{shop.url}list/2", fields={"n": ".name"}, each="li.card", **PRIVATE)
    assert [row["n"] for row in page.data["rows"]] == [f"Lamp {n}" for n in range(21, 41)]


def test_the_cache_has_other_fields(inline: Inline, shop: Shop) -> None:
    url = f"{shop.url}product/7"
    for fields, requests in ((FIELDS, 1), (FIELDS, 1), ({"name": {"css": "h1"}}, 2), ({}, 2)):
        (page,) = inline.run("page", url=url, fields=fields, max_age=60, **PRIVATE)
        assert shop.requests["/product/7"] == requests
        assert set(fields) <= set(page.data.get("fields", {}))


def test_a_job_without_enough_fields_fails_and_keeps_its_results(inline: Inline, shop: Shop) -> None:
    spec = {"url": f"{shop.url}list/15", "limit": 6, "fields": FIELDS, **PRIVATE}
    found = inline.run("site", **spec, require_fields=0.9)
    inline.assert_failed("fewer than 90%", "name: found on 5 of 6 pages")
    assert len(found) == 6
    assert inline.job.exit_reason == "fields missing"
    required = {**FIELDS, "name": {"css": "h1", "when": "/product/", "required": True}}
    inline.run("site", **{**spec, "fields": required}, require_fields=0.9)
    assert inline.job.status == "completed"


def test_kept_pages_are_extracted_again(inline: Inline, shop: Shop) -> None:
    crawled = inline.run("site", url=f"{shop.url}list/15", limit=30, keep_html=True, content="none", **PRIVATE)
    source, before = inline.job.id, sum(shop.requests.values())
    kept = kept_html_in(live(inline))
    assert kept.pages == len(crawled) == 30
    assert kept.stored < kept.raw
    again = inline.run("extract", job=source, fields=FIELDS, content="text", facts="links")
    assert inline.job.status == "completed", inline.job
    assert sum(shop.requests.values()) == before
    assert [page.final_url for page in again] == [page.final_url for page in crawled]
    lamp = next(page for page in again if page.final_url.endswith("/product/290"))
    assert lamp.data["fields"]["sku"] == "L-0290"
    assert "Light for a desk" in lamp.data["text"]
    assert lamp.metadata["extracted_from"] == source
    assert lamp.metadata["http_status"] == 200
    assert field_counts_in(live(inline))["name"].asked == len(crawled)
    assert inline.ledger()[0].state == "done"
    inline.run("extract", job=source, fields=FIELDS, require_fields=1)
    inline.assert_failed("fewer than 100%")
    job_removal.delete(inline.database, source)
    assert html.page(inline.database, source) == []
    inline.run("extract", job=source)
    inline.assert_failed("there is no job")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # warcio does not close its buffers
def test_an_archive_is_extracted_too(inline: Inline, shop: Shop) -> None:
    inline.run("page", urls=[f"{shop.url}product/{n}" for n in (1, 2)], warc=True, **PRIVATE)
    source, before = inline.job.id, sum(shop.requests.values())
    found = inline.run("extract", job=source, fields=FIELDS, facts="headers")
    assert [page.data["fields"]["name"] for page in found] == ["Lamp 1", "Lamp 2"]
    names = {name for page in found for name in page.data["headers"]}
    assert "content-type" in names
    assert "set-cookie" not in names, "headers that identify a visitor are in the archive only"
    assert sum(shop.requests.values()) == before
    inline.run("page", url=f"{shop.url}product/1", **PRIVATE)
    inline.run("extract", job=inline.job.id, fields=FIELDS)
    inline.assert_failed("kept no pages", "--keep-html")


def test_a_selector_that_takes_too_long_loses_no_page(
    inline: Inline, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows with the fourth power of the depth of the page. The page is read again without fields."""
    deep = "<title>Deep</title>" + "<div>" * 450 + "the end"
    monkeypatch.setattr(shop, "page", lambda path: deep if path == "/deep" else "")
    inline.change_settings(read_seconds=0.5)
    slow = {"slow": {"xpath": "//div[.//div[.//div[.//div[.//x]]]]"}, "title": "title"}
    (page,) = inline.run("page", url=f"{shop.url}deep", fields=slow, **PRIVATE)
    assert inline.job.status == "completed"
    assert page.data["title"] == "Deep"
    assert "the end" in page.data["markdown"]
    assert page.data["field_errors"] == [{"field": "", "error": "reader_died", "raw": None}]
    assert field_counts_in(live(inline))["slow"] == FieldCount(1, 0, 0)


def test_the_page_shows_the_hook() -> None:
    text = (HOW_TO / "write-a-page-hook.md").read_text()
    shown = text.split("```python\n")[1].split("```")[0]
    assert shown.strip() == HOOK[HOOK.index("def look") :].strip()
    assert len(text[text.index("```python") :].split("```toml")[0].splitlines()) <= 30


@pytest.mark.parametrize("kind", ["page", "site"])
def test_the_hook_runs(inline: Inline, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.syspath_prepend(
        str(install(tmp_path / "plugins", {"page_hook": HOOK}, {}, {"words": "page_hook:look"}))
    )
    feed = '<link rel=alternate type="application/rss+xml" href="/feed?x=1">'
    pages = {"/": f'{feed}<a href="/p?print=1">print</a> <body>one two', "/feed?x=1": "<p>news", "/p?print=1": "<p>no"}
    monkeypatch.setattr(shop, "page", lambda path: pages.get(path, ""))
    found = inline.run(kind, url=shop.url, **PRIVATE)
    assert found[0].data["body_words"] == 3
    assert found[0].data["server"].startswith("BaseHTTP")
    if kind == "site":
        states = {row.url.removeprefix(shop.url): (row.state, row.reason) for row in inline.ledger()}
        assert states == {"": ("done", None), "feed?x=1": ("done", None), "p?print=1": ("skipped", "hook_refused")}


def test_a_hook_that_fails_is_a_reason(
    inline: Inline, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def look(page):\n    if '/product/' in page.url: raise KeyError('colour')\n"
    monkeypatch.syspath_prepend(str(install(tmp_path / "plugins", {"bad_hook": source}, {}, {"bad": "bad_hook:look"})))
    inline.run("site", url=f"{shop.url}list/15", depth=1, **PRIVATE)
    failed = [row for row in inline.ledger() if row.state == "failed"]
    assert len(failed) == IN_A_LIST
    assert {(row.reason, row.detail) for row in failed} == {("hook_failed", "bad: KeyError: 'colour'")}


def test_a_hook_that_hangs_in_c_is_a_reason(
    inline: Inline, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def look(page):\n    '1' * 10 in '0' and None\n    sum(range(10**12))\n"
    monkeypatch.syspath_prepend(
        str(install(tmp_path / "plugins", {"slow_hook": source}, {}, {"slow": "slow_hook:look"}))
    )
    inline.change_settings(read_seconds=0.5)
    (page,) = inline.run("page", url=f"{shop.url}product/1", **PRIVATE)
    assert page.metadata["error"] == "hook_failed"
    assert json.dumps(page.data) == "{}"


def test_a_hook_replaces_what_silkline_found(
    inline: Inline, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/how-to/write-a-page-hook.md says so."""
    source = "from silkline.model.hook import Additions\ndef look(page): return Additions(data={'title': 'Ours'})\n"
    monkeypatch.syspath_prepend(str(install(tmp_path / "plugins", {"own_hook": source}, {}, {"own": "own_hook:look"})))
    (page,) = inline.run("page", url=f"{shop.url}product/1", **PRIVATE)
    assert page.data["title"] == "Ours"

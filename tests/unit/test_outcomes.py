"""A page is stored under the address that the server answered, whatever address a script has set."""

from __future__ import annotations

import json

import pytest

from silkline.crawl.outcomes import body_of, page_of
from silkline.crawl.plan import PACES, Plan
from silkline.crawl.reading import PageReader
from silkline.crawl.url_queue import FrontierUrl
from silkline.model.fetched import Fetched, Rendered
from silkline.model.url import url_key

PLAN = Plan(fetchers=1, parsers=0, concurrency=1, pace=PACES["max"], user_agent="x", scope="any", content="none")
EVIL, BANK = "https://a.example/~evil", "https://a.example/~bank/account"


@pytest.mark.parametrize(
    ("script_url", "said"),
    [(BANK, BANK), (EVIL, None), (f"{EVIL}#part", None), ("about:blank", None), ("blob:https://a.example/1", None)],
)
def test_a_script_cannot_take_the_address_of_another_page(script_url: str, said: str | None) -> None:
    shown = Rendered(script_url, b"<!doctype html><title>Evil</title><a href='next'>x</a>")
    fetched = Fetched(EVIL, 200, headers={"content-type": "text/html"}, body=b"<p>x", rendered=shown)
    entry = FrontierUrl(0, 1, EVIL, 0)
    body = body_of(entry, fetched, simhash=False, sitemap=False)
    assert body.url == EVIL, "whatever this page does to its reader is not blamed on another"
    reading = PageReader(PLAN).reading_of(body)
    result = page_of(entry, fetched, reading).result
    assert result is not None
    assert (result.original_url, result.final_url) == (EVIL, EVIL)
    assert (result.original_key, result.final_key) == (url_key(EVIL), url_key(EVIL))
    assert json.loads(result.metadata).get("script_url") == said
    folder = "https://a.example/~bank/" if said else "https://a.example/"
    assert reading.links == [f"{folder}next"], "links are relative to what the script set, as in a browser"


@pytest.mark.parametrize("chain", ["level-1", "level-0 foreign"])
def test_the_note_on_a_sitemap_that_is_a_page_is_no_address(chain: str) -> None:
    fetched = Fetched(EVIL, 200, headers={"content-type": "text/html"}, body=b"<p>x")
    entry = FrontierUrl(1, 1, EVIL, 1, 0, chain, "robots")
    reading = PageReader(PLAN).reading_of(body_of(entry, fetched, simhash=False, sitemap=False))
    result = page_of(entry, fetched, reading).result
    assert result is not None
    assert result.original_url == EVIL
    assert "redirected_from" not in json.loads(result.metadata)

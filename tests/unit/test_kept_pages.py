"""Pages that a job keeps: compressed with a dictionary, and opened again one by one."""

import pytest

from silkline.crawl.kept_pages import SAMPLES, KeptPage, PageKeeper, PageOpener, page_to_keep
from silkline.crawl.url_queue import FrontierUrl
from silkline.model.fetched import Fetched, Rendered
from tests.support.shop import product


def page(number: int) -> KeptPage:
    return KeptPage("text/html", "utf-8", "", "", {"server": "s"}, product(number).encode())


def test_pages_come_back_and_a_dictionary_makes_them_small() -> None:
    keeper, dictionaries, kept = PageKeeper(), {}, []
    for number in range(1, 101):
        html, dictionary = keeper.keep(number, page(number))
        kept.append(html)
        if dictionary is not None:
            dictionaries[dictionary.id] = dictionary.data
            assert number == SAMPLES
    opener = PageOpener(dictionaries.get)
    assert [opener.open(each) for each in kept] == [page(number) for number in range(1, 101)]
    assert [each.dictionary for each in kept[:SAMPLES]] == [0] * SAMPLES
    assert {each.dictionary for each in kept[SAMPLES:]} == set(dictionaries)
    assert len(kept[-1].html) * 3 < len(kept[0].html)
    assert kept[0].size == len(page(1).body)
    with pytest.raises(ValueError, match="dictionary of this page is missing"):
        PageOpener({}.get).open(kept[-1])
    with pytest.raises(ValueError, match="damaged"):
        opener.open(kept[-1]._replace(html=kept[-1].html[:-5]))


def test_pages_too_small_for_a_dictionary_need_none() -> None:
    keeper = PageKeeper()
    small = KeptPage("", "", "", "", {}, b"x")
    kept = [keeper.keep(number, small) for number in range(SAMPLES * 2)]
    assert all(PageOpener({d.id: d.data for _, d in kept if d}.get).open(html) == small for html, _ in kept)


def test_what_is_kept() -> None:
    entry = FrontierUrl(0, 1, "https://a.example/", 0)
    headers = {"set-cookie": "secret", "x-robots-tag": "noarchive"}
    plain = Fetched("https://a.example/", 200, headers=headers, body=b"<p>", content_type="text/html", charset="big5")
    kept = page_to_keep(entry, plain)
    assert kept == KeptPage(
        "text/html", "big5", "noarchive", "https://a.example/", {"x-robots-tag": "noarchive"}, b"<p>"
    )
    rendered = Rendered("https://a.example/", body=b"<b>shown")
    shown = page_to_keep(entry, Fetched("https://a.example/", 200, body=b"<script>", rendered=rendered))
    assert shown is not None
    assert (shown.body, shown.charset) == (b"<b>shown", "utf-8")
    assert page_to_keep(entry, Fetched("https://a.example/", 200, body=b"%PDF-1.7")) is None
    assert page_to_keep(entry, Fetched("https://a.example/", 200, body=b"x" * 10_000_001)) is None

"""The seen-set: exactly a set, in a sixth of the memory."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from silkline.crawl.seen import Seen, digest_of, key_of
from silkline.model.url import url_key

URLS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)


@given(st.lists(st.lists(URLS, max_size=30), max_size=30))
def test_it_is_a_set(batches: list[list[str]]) -> None:
    seen, model = Seen(buckets=2), set()
    for batch in batches:
        fresh = [url for url in dict.fromkeys(batch) if url not in model]
        assert [url for url, _ in seen.add_all(batch)] == fresh
        model.update(batch)
        assert len(seen) == len(model)
    assert all(url in seen for url in model)


def test_growing_keeps_everything() -> None:
    seen = Seen(buckets=1)
    urls = [f"https://example.com/{number}" for number in range(5_000)]
    assert all(seen.add(url) for url in urls)
    assert not any(seen.add(url) for url in urls)
    assert "https://example.com/5000" not in seen


def test_a_key_across_two_neighbours_is_not_in_the_set() -> None:
    seen = Seen(buckets=1)
    first, second = digest_of("one"), digest_of("two")
    seen.load(array("q", [key_of(first), key_of(second)]))
    straddling = (first + second)[3:11]
    assert seen._add(straddling)
    assert not seen._add(straddling)


@given(st.lists(URLS, max_size=50))
def test_keys_of_the_ledger_are_what_it_loads(urls: list[str]) -> None:
    seen = Seen(buckets=1)
    seen.load(array("q", [url_key(url) for url in urls]))
    assert seen.add_all(urls) == []
    assert all(key_of(digest_of(url)) == url_key(url) for url in urls)


def test_an_answer_does_not_depend_on_how_lately_a_url_was_asked_for() -> None:
    seen = Seen()
    urls = [f"https://example.com/{number}" for number in range(60_000)]
    for start in range(0, len(urls), 500):
        assert len(seen.add_all(urls[start : start + 500])) == 500
    assert seen.add_all(urls) == []

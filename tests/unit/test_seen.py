"""The seen-set: exactly a set, in a sixth of the memory."""

from hypothesis import given
from hypothesis import strategies as st

from silkline.crawl.seen import Seen, seeded_digests

SEED = 0x5EED
URLS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)


@given(st.lists(st.lists(URLS, max_size=30), max_size=30))
def test_it_is_a_set(batches: list[list[str]]) -> None:
    seen, model = Seen(SEED, buckets=2), set()
    for batch in batches:
        fresh = [url for url in dict.fromkeys(batch) if url not in model]
        assert seen.add_all(batch) == fresh
        model.update(batch)
        assert len(seen) == len(model)
    assert all(url in seen for url in model)


def test_growing_keeps_everything() -> None:
    seen = Seen(SEED, buckets=1)
    urls = [f"https://example.com/{number}" for number in range(5_000)]
    assert all(seen.add(url) for url in urls)
    assert not any(seen.add(url) for url in urls)
    assert "https://example.com/5000" not in seen


def test_a_key_across_two_neighbours_is_not_in_the_set() -> None:
    seen = Seen(SEED, buckets=1)
    both = seeded_digests(["one", "two"], SEED)
    seen.load(both)
    straddling = both[3:11]
    assert seen._add(straddling)
    assert not seen._add(straddling)


@given(st.lists(URLS, max_size=50))
def test_digests_are_what_it_loads(urls: list[str]) -> None:
    seen = Seen(SEED, buckets=1)
    seen.load(seeded_digests(urls, SEED))
    assert seen.add_all(urls) == []


def test_an_answer_does_not_depend_on_how_lately_a_url_was_asked_for() -> None:
    seen = Seen(SEED)
    urls = [f"https://example.com/{number}" for number in range(60_000)]
    for start in range(0, len(urls), 500):
        assert len(seen.add_all(urls[start : start + 500])) == 500
    assert seen.add_all(urls) == []

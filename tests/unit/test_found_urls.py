"""New URLs travel by columns, and a fetcher cannot send columns that do not fit."""

import msgspec
import pytest

from silkline.crawl.messages import FoundUrl, FoundUrls, encoder

ROW = FoundUrl(7, "https://a.example/", "a.example", 1, "queued", None, None, 3, "link")
OTHER = FoundUrl(8, "https://b.example/", "b.example", 2, "skipped", "robots", "why", None, "redirect", "https://c/")


def test_columns_have_the_order_of_a_row() -> None:
    found = FoundUrls.of([ROW, OTHER])
    assert found.__struct_fields__ == FoundUrl._fields
    assert [FoundUrl(*row) for row in zip(*found.columns, strict=True)] == [ROW, OTHER]
    assert msgspec.msgpack.decode(encoder().encode(found), type=FoundUrls) == found
    assert len(found) == 2


def test_a_column_of_equal_values_is_sent_once() -> None:
    rows = [ROW._replace(url_key=number, url=f"https://a.example/{number}") for number in range(3)]
    found = FoundUrls.of(rows)
    assert (found.host, found.depth, found.reason) == (["a.example"], [1], [None])
    assert [FoundUrl(*row) for row in zip(*found.columns, strict=True)] == rows
    assert FoundUrls.of([ROW, ROW]).url == [ROW.url, ROW.url], "this column says how many URLs there are"


def test_depths_of_queued_urls() -> None:
    assert FoundUrls.of([ROW, ROW]).queued_depths() == {1: 2}
    assert FoundUrls.of([OTHER, OTHER]).queued_depths() == {}
    assert FoundUrls.of([ROW, OTHER, ROW._replace(depth=2)]).queued_depths() == {1: 1, 2: 1}
    assert FoundUrls.of([ROW, OTHER._replace(depth=1)]).queued_depths() == {1: 1}


def test_no_urls() -> None:
    assert not FoundUrls.of([])
    assert FoundUrls.of([]) == FoundUrls()


def test_roots_are_seeds_and_where_they_redirect() -> None:
    ways = [("a", 0, "seed"), ("b", 0, "redirect"), ("c", 0, "link"), ("d", 1, "redirect")]
    found = [ROW._replace(url=url, depth=depth, found_via=via) for url, depth, via in ways]
    assert FoundUrls.of(found).roots() == ["a", "b"]
    assert FoundUrls.of(found[3:]).roots() == []


def test_columns_of_different_length_are_no_message() -> None:
    found = msgspec.structs.astuple(FoundUrls.of([ROW, OTHER, ROW]))
    broken = encoder().encode([*found[:-1], found[-1][:2]])
    with pytest.raises(msgspec.DecodeError, match="not equally long"):
        msgspec.msgpack.decode(broken, type=FoundUrls)
    with pytest.raises(msgspec.DecodeError, match="not equally long"):
        msgspec.msgpack.decode(encoder().encode([[]] * 9 + [[None]]), type=FoundUrls)


def test_a_value_of_another_type_is_no_message() -> None:
    found = msgspec.structs.astuple(FoundUrls.of([ROW]))
    with pytest.raises(msgspec.DecodeError):
        msgspec.msgpack.decode(encoder().encode([["7"], *found[1:]]), type=FoundUrls)

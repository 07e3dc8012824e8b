"""Which page links where: written in the checkpoint of the page, read in one pass, gone with the job."""

import struct
from collections.abc import Sequence

import pytest

from silkline.errors import LeaseLost
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.ledger import Checkpoint, PageLinks, Url
from silkline.store import job_removal, jobs, links, urls
from silkline.store.backlinks import Backlink, LinksIn, LinksOut, into, out_of
from tests.store.given import finished, rescued, running, settled, url

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def packed(keys: Sequence[int]) -> bytes:
    return struct.pack(f">{len(keys)}q", *keys)


def written(database: Database, job: Job, pages: dict[int, list[int]]) -> None:
    """Pages of the ledger (whose keys are seven times their ids) with the keys of what they name."""
    known = {row.id for row in urls.page(database, job.id)}
    found = [url(id) for id in pages if id not in known]
    named = [PageLinks(id, packed(keys)) for id, keys in pages.items()]
    urls.record(database, job, Checkpoint(found=found, settled=[settled(id) for id in pages], links=named))


def row(database: Database, job: Job, id: int) -> Url:
    found = urls.by_id(database, job.id, id)
    assert found is not None
    return found


def test_what_was_written_is_read(database: Database) -> None:
    job, neighbour = running(database), running(database)
    written(database, job, {3: [7, SMALLEST, 21], 1: [LARGEST, 7, 0, -1], 2: []})
    written(database, job, {9: [7], 4: [-1]})
    written(database, neighbour, {1: [7]})
    assert links.keys_of(database, job.id, 3) == [7, SMALLEST, 21]
    assert links.keys_of(database, job.id, 1) == [LARGEST, 7, 0, -1]
    assert links.keys_of(database, job.id, 2) == []
    assert links.keys_of(database, job.id, 9) == [7]
    assert links.keys_of(database, job.id, 5) is None
    found = links.sources(database, job.id, [7, -1, SMALLEST, LARGEST, 5], most=10)
    assert {key: (each.count, sorted(each.ids)) for key, each in found.items()} == {
        7: (3, [1, 3, 9]),
        -1: (2, [1, 4]),
        SMALLEST: (1, [3]),
        LARGEST: (1, [1]),
        5: (0, []),
    }


def test_all_are_counted_and_the_first_are_named(database: Database) -> None:
    job = running(database)
    written(database, job, {id: [7, id * 7] for id in range(1, 31)})
    found = links.sources(database, job.id, [7], most=4)[7]
    assert (found.count, found.ids) == (30, [1, 2, 3, 4])


def test_many_links_make_several_rows_and_none_is_missed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "ROW_BYTES", 40)
    monkeypatch.setattr(links, "_ROWS", 2)
    job = running(database)
    pages = {id: [id + step for step in range(id % 7)] for id in range(1, 60)}
    written(database, job, pages)
    assert len(database.rows("links.page", job_id=job.id, after=0, wanted=100)) > 10
    assert {id: links.keys_of(database, job.id, id) for id in pages} == pages
    everything = {key for keys in pages.values() for key in keys}
    found = links.sources(database, job.id, everything, most=100)
    assert {key: each.ids for key, each in found.items()} == {
        key: [id for id, keys in pages.items() if key in keys] for key in everything
    }


def test_bytes_that_only_look_like_a_key_are_none(database: Database) -> None:
    job = running(database)
    written(database, job, {1: [0x0102030405060708, 0x1112131415161718]})
    found = links.sources(database, job.id, [0x0506070811121314], most=10)
    assert found[0x0506070811121314].count == 0


def test_who_lost_the_lease_writes_no_links(database: Database) -> None:
    job = running(database)
    written(database, job, {1: [7]})
    assert rescued(database, jobs.get(database, job.id))
    with pytest.raises(LeaseLost):
        written(database, job, {2: [7]})
    assert links.sources(database, job.id, [7], most=10)[7].ids == [1]


def test_links_in_are_pages_and_sitemaps_and_what_lies_behind_redirects(database: Database) -> None:
    job = running(database)
    found = [
        url(1, found_via="seed"),
        url(2, found_on=1, found_via="robots"),
        url(3, found_on=1),
        url(4, found_on=3),
        url(5, found_on=4, found_via="redirect"),
        url(6, found_via="seed"),
    ]
    ended = [
        settled(1),
        settled(2, "skipped", reason="sitemap"),
        settled(3),
        settled(4, "skipped", reason="redirected"),
        settled(5, "failed", reason="http_404"),
        settled(6, "skipped", reason="redirected"),
    ]
    named = [
        PageLinks(1, packed([21, 35])),
        PageLinks(2, packed([7, 35])),
        PageLinks(3, packed([28])),
        PageLinks(4, packed([35])),
        PageLinks(6, packed([35])),
    ]
    urls.record(database, job, Checkpoint(found=found, settled=ended, links=named))
    links_in = into(database, job.id, [row(database, job, 5), row(database, job, 3), row(database, job, 6)])
    assert links_in[5] == LinksIn(
        4,
        (
            Backlink(1, "https://example.com/1", "page"),
            Backlink(2, "https://example.com/2", "sitemap"),
            Backlink(3, "https://example.com/3", "page", ("https://example.com/4",)),
            Backlink(6, "https://example.com/6", "redirect"),
        ),
    )
    assert links_in[3] == LinksIn(1, (Backlink(1, "https://example.com/1", "page"),))
    assert links_in[6] == LinksIn()
    assert len(into(database, job.id, [row(database, job, 5)], most=2)[5].sources) == 2
    assert into(database, job.id, []) == {}


def test_redirects_in_a_circle_end(database: Database) -> None:
    job = running(database)
    found = [url(1, found_via="seed"), url(2, found_on=1), url(3, found_on=2, found_via="redirect")]
    turned = [settled(id, "skipped", reason="redirected") for id in (2, 3)]
    named = [PageLinks(1, packed([14])), PageLinks(2, packed([21])), PageLinks(3, packed([14]))]
    urls.record(database, job, Checkpoint(found=found, settled=[settled(1), *turned], links=named))
    links_in = into(database, job.id, [row(database, job, 3)])[3]
    assert [(source.id, source.via) for source in links_in.sources] == [
        (1, ("https://example.com/2",)),
        (3, ("https://example.com/2",)),
    ]


def test_a_crawl_without_links_knows_who_named_a_url_first(database: Database) -> None:
    job = running(database)
    urls.record(database, job, Checkpoint(found=[url(1), url(2, found_on=1), url(3, found_on=1)]))
    assert into(database, job.id, [row(database, job, 2)])[2] == LinksIn(
        1, (Backlink(1, "https://example.com/1", "page"),)
    )
    out = out_of(database, row(database, job, 1))
    assert (out.count, [each.id for each in out.urls]) == (None, [2, 3])


@pytest.mark.parametrize("indexed", [False, True])
def test_links_out_in_the_order_of_the_page(database: Database, indexed: bool) -> None:
    job, neighbour = running(database), running(database)
    written(database, neighbour, {1: [14]})
    written(database, job, {1: [28, 5, 14, 7], 2: [], 4: [7]})
    if indexed:
        urls.index(database, job.id)
    four, two, one = (row(database, job, id) for id in (4, 2, 1))
    assert out_of(database, one) == LinksOut(4, 1, (four, two, one))
    assert out_of(database, one, most=2) == LinksOut(4, 1, (four, two))
    assert out_of(database, two) == LinksOut(0, 0, ())


@pytest.mark.parametrize("chunk", [1, 300, 2_000])
def test_links_go_with_their_job(database: Database, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "ROW_BYTES", 8)
    job, neighbour = running(database), running(database)
    for each in (job, neighbour):
        written(database, each, {id: [7] for id in range(1, 8)})
        finished(database, each)
    job_removal.delete(database, job.id, chunk=chunk)
    assert links.sources(database, job.id, [7], most=10)[7].count == 0
    assert links.sources(database, neighbour.id, [7], most=10)[7].count == 7

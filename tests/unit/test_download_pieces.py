"""The pieces of a download: however large the file is, little of it is in memory at once."""

import json
import tempfile
import tracemalloc
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from silkline.export.download import PIECE, GivenAway, MarkdownZip, download
from silkline.export.large_rows import LARGE, LargeRow
from silkline.export.open import to_path
from silkline.export.rows import Filter, stream
from silkline.export.table import columns_in
from silkline.export.zip_stream import DEFLATED, STORED, ZipStream
from silkline.model.ledger import Checkpoint
from silkline.store import urls
from silkline.store.opening import open_database
from silkline.store.results import Result
from tests.store.given import finished, result, running, settled, url

PAGES = 100
TEXT = "words " * 2_000
MOMENT = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_large_file_is_given_away_in_small_pieces(tmp_path: Path, form: str) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        job, ids = running(database, kind="extension"), range(1, PAGES + 1)
        stored = [result(id, data=json.dumps({"markdown": TEXT, f"of {id}": id})) for id in ids]
        urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], stored))
        finished(database, job)
        pieces = [piece for piece in download(database, tmp_path, job.id, form, "folder") if isinstance(piece, bytes)]
        assert max(map(len, pieces)) < PIECE + 2 * len(TEXT)
        columns = columns_in(stream(database, job.id, Filter()))
        with to_path(form, tmp_path / f"file.{form}", columns=columns) as writer:
            for each in stream(database, job.id, Filter()):
                writer.write(each)
        assert b"".join(pieces) == (tmp_path / f"file.{form}").read_bytes()
        assert sum(map(len, pieces)) > 10 * PIECE


@pytest.mark.parametrize("form", ["jsonl", "csv", "md", "parquet"])
def test_a_large_result_is_announced_and_dropped_before_it_is_sent(tmp_path: Path, form: str) -> None:
    """One emoji makes each character of its text take four bytes. Letters without order do not get small as a zip."""
    text = "\U0001f600" + "".join(Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=2_000_000))
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        job, ids = running(database, kind="extension"), range(1, 3)
        stored = [result(id, data=json.dumps({"markdown": text}), final_url=f"https://a.test/{id}") for id in ids]
        urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], stored))
        finished(database, job)
        list(download(database, tmp_path, job.id, form, "folder"))  # everything is loaded
        tracemalloc.start()
        try:
            large, held = list[LargeRow](), list[int]()
            for piece in download(database, tmp_path, job.id, form, "folder"):
                if isinstance(piece, LargeRow):
                    assert piece.memory >= 4 * 2_000_000
                    assert tracemalloc.get_traced_memory()[0] < 1 << 20, "the row is not read yet"
                    large.append(piece)
                elif len(piece) > LARGE:
                    assert large[-1].memory == 0
                    held.append(tracemalloc.get_traced_memory()[0] - len(piece))
        finally:
            tracemalloc.stop()
        assert len(large) == (4 if form == "csv" else 2)
        assert len(held) == 2
        assert max(held) < 1 << 20


def test_a_table_is_not_kept_on_the_disk_before_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a few bytes can have very many rows, each with the columns of the page."""
    for name in ("TemporaryFile", "SpooledTemporaryFile", "NamedTemporaryFile", "mkstemp"):
        monkeypatch.setattr(tempfile, name, None)
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        spec = {"fields": {"name": {"css": "b"}}, "each": "i"}
        job = running(database, kind="site", payload=spec, request_url="https://example.com/")
        rows = {"description": "d" * 400, "rows": [{"name": number} for number in range(20_000)]}
        urls.record(database, job, Checkpoint([url(1)], [settled(1)], [result(1, data=json.dumps(rows))]))
        finished(database, job)
        before = set(tmp_path.iterdir())
        found = download(database, tmp_path, job.id, "csv", "folder")
        pieces = (piece for piece in found if isinstance(piece, bytes))
        first = next(piece for piece in pieces if piece)
        assert len(first) < 2 * PIECE
        assert set(tmp_path.iterdir()) == before
        lines = (first + b"".join(pieces)).split(b"\r\n")
        assert len(lines) == 20_002
        assert len(lines[-2]) > 400


def page(id: int) -> Result:
    return Result(id, "job", id, None, f"https://example.com/some/path/{id}", {"markdown": "a"}, True, {}, MOMENT)


def test_a_zip_file_of_many_pages_takes_little_memory_for_each(tmp_path: Path) -> None:
    file, pages = GivenAway(), 20_000

    def write(packed: MarkdownZip, ids: range) -> int:
        """Returns the memory that is in use then."""
        for id in ids:
            packed.write(page(id))
            file.take()
        return tracemalloc.get_traced_memory()[0]

    with closing(MarkdownZip(file, "folder", tmp_path)) as packed:
        tracemalloc.start()
        try:
            first = write(packed, range(pages))
            assert write(packed, range(pages, 2 * pages)) - first < 300 * pages
        finally:
            tracemalloc.stop()
        assert 0 < max(len(file.take()) for _ in packed.ending()) <= 2 * PIECE


@pytest.mark.parametrize(("files", "start"), [(0, 0), (3, 0), (70_000, 0), (3, 5 << 30)])
def test_a_zip_file_of_any_size_can_be_read(tmp_path: Path, files: int, start: int) -> None:
    """Very many files, and places beyond 4 GB, need other numbers in the list of the files."""
    content = b"some words " * 3
    with (tmp_path / "file.zip").open("wb") as file, closing(ZipStream(file)) as packed:
        file.seek(start)  # there is nothing before: such a file takes no room on the disk
        for number in range(files):
            packed.add(f"folder/\u00e9-{number}.md", MOMENT, content, DEFLATED if number % 2 else STORED)
        for _ in packed.ending():
            pass
    with zipfile.ZipFile(tmp_path / "file.zip") as read:
        assert read.namelist() == [f"folder/\u00e9-{number}.md" for number in range(files)]
        for entry in read.infolist()[-3:]:
            assert read.read(entry) == content
            assert entry.date_time == (2026, 5, 4, 3, 2, 0)
            assert entry.external_attr >> 16 == 0o644

"""What a server sends cannot end the archive of a job."""

import logging
from pathlib import Path

import pytest

from silkline.model.fetched import Fetched
from silkline.warc_files import Archive, records

# warcio leaves its temporary files to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def answer(body: bytes = b"<p>words", url: str = "https://a.example/", **headers: str) -> Fetched:
    return Fetched(url, 200, headers=headers, body=body, content_type="text/html")


def stored(data: Path) -> list[tuple[int, bytes, list[tuple[str, str]]]]:
    return [(found.url_id, found.record.payload, found.record.http_headers.headers) for found in records(data, "job")]


@pytest.mark.parametrize("name", ["x-ä", "x-\xff", "x a", "x:y", "x\ny", "", "x-\ud800"])
def test_a_header_whose_name_is_not_allowed_is_left_out(tmp_path: Path, name: str) -> None:
    archive = Archive(tmp_path, "job", 1)
    archive.add(1, answer(**{name: "1", "x-good": "1"}))
    archive.close()
    length = ("Content-Length", "8")
    assert stored(tmp_path) == [(1, b"<p>words", [("x-good", "1"), length])]


def test_a_record_that_cannot_be_made_costs_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    archive = Archive(tmp_path, "job", 1)
    archive.add(1, answer())
    for id in (2, 3):
        archive.add(id, answer(url="https://a.example/\ud800"))
    archive.add(4, answer(b"<p>more"))
    archive.close()
    assert [(id, body) for id, body, _ in stored(tmp_path)] == [(1, b"<p>words"), (4, b"<p>more")]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]

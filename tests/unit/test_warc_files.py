"""What a server sends cannot end the archive of a job."""

import gzip
import logging
import os
import random
import tempfile
from pathlib import Path

import pytest

from silkline.model.fetched import Fetched
from silkline.warc_files import Archive, folder_of, newest_records, records


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


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ('attachment; filename="ä.txt"; other=\xff', 'attachment; filename="%C3%A4.txt"; other=%C3%BF'),
        ("ü; plain", "%C3%BC; plain"),
        ("half \ud800", "half %3F"),
        ("two\r\nlines", "two  lines"),
    ],
)
def test_any_value_of_a_header_is_kept(tmp_path: Path, value: str, kept: str) -> None:
    archive = Archive(tmp_path, "job", 1)
    archive.add(1, answer(x=value))
    archive.close()
    assert stored(tmp_path) == [(1, b"<p>words", [("x", kept), ("Content-Length", "8")])]


def test_a_large_answer_needs_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A confined fetcher cannot make one. A text of two letters took a minute to compress."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    text = "".join(random.Random(1).choices("ab", k=200_000)) * 50
    archive = Archive(tmp_path, "job", 1)
    archive.add(1, answer(text.encode()))
    archive.close()
    assert [(id, len(body)) for id, body, _ in stored(tmp_path)] == [(1, len(text))]


def test_a_record_that_cannot_be_made_costs_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    archive = Archive(tmp_path, "job", 1)
    archive.add(1, answer())
    for id in (2, 3):
        archive.add(id, answer(url="https://a.example/\ud800"))
    archive.add(4, answer(b"<p>more"))
    archive.close()
    assert [(id, body) for id, body, _ in stored(tmp_path)] == [(1, b"<p>words"), (4, b"<p>more")]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def record(head: str, block: bytes, length: str = "", kind: str = "response") -> bytes:
    start = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://x/\r\nContent-Type: application/http\r\n"
    return f"{start}{head}Content-Length: {length or len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"


@pytest.mark.parametrize(
    "broken",
    [
        record("", GOOD),
        record("WARC-Silkline-Id: abc\r\n", GOOD),
        record(f"WARC-Silkline-Id: {'9' * 5_000}\r\n", GOOD),
        record(f"WARC-Silkline-Id: {2**70}\r\n", GOOD),
        record("WARC-Silkline-Id: 1\r\n", GOOD.replace(b"h: 2", b"h: x")),
        record("WARC-Silkline-Id: 1\r\n", GOOD.replace(b"h: 2", b"h: 999999999999")),
        record("WARC-Silkline-Id: 1\r\n", GOOD, "abc"),
        record("WARC-Silkline-Id: 1\r\n", GOOD, "-5"),
        record("WARC-Silkline-Id: 1\r\n", GOOD, kind="warcinfo"),
        record("WARC-Silkline-Id: 1\r\n", GOOD.replace(b"OK\r\n", b"OK\r\nContent-Encoding: br\r\n")),
        b"nothing of the kind\r\n\r\n" * 50,
    ],
)
def test_a_record_that_is_not_ours_ends_only_its_file(tmp_path: Path, broken: bytes) -> None:
    for number in (1, 3):
        archive = Archive(tmp_path, "job", number)
        archive.add(number, answer())
        archive.close()
    (tmp_path / "warc" / "job" / "000002-000-1.warc.gz").write_bytes(gzip.compress(broken))
    found = [(each.url_id, each.record.payload) for each in records(tmp_path, "job")]
    assert found == [(1, b"<p>words"), (3, b"<p>words")]


def test_of_a_page_that_was_fetched_twice_the_last_answer_counts(tmp_path: Path) -> None:
    """Attempts in their order, then files in the order of writing, whatever the number of the process."""
    folder = folder_of(tmp_path, "job")
    for lease, process, written, body in ((2, 9, 10, b"old"), (2, 8, 20, b"new"), (1, 7, 30, b"first")):
        archive = Archive(tmp_path, "job", lease)
        archive.add(1, answer(body))
        archive.add(1, answer(body + b" again"))
        archive.close()
        file = next(folder.glob(f"*-{os.getpid()}.warc.gz")).rename(folder / f"{lease:06d}-000-{process}.warc.gz")
        os.utime(file, (written, written))
    assert [found.record.payload for found in newest_records(tmp_path, "job")] == [b"new again"]
    assert len(list(records(tmp_path, "job"))) == 6

"""An archive in which the ids of URLs were given twice: an attempt died after it had archived pages, and before its
checkpoint. The next one gave their ids to other URLs."""

import io
import logging
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from silkline.config import Settings
from silkline.export.rows import Filter
from silkline.export.warc import write_warc
from silkline.model.database import Database
from silkline.model.fetched import Fetched
from silkline.model.job import Job, NewJob, Status
from silkline.model.ledger import Checkpoint
from silkline.runner.inline import run_here
from silkline.store import results, urls
from silkline.warc_files import Archive
from tests.store.given import finished, result, running, settled, url

A, B = "https://example.com/1", "https://example.com/2"


def page(address: str, heading: str) -> Fetched:
    return Fetched(address, 200, body=f"<h1>{heading}</h1>".encode(), content_type="text/html")


def crawled(database: Database, data: Path) -> Job:
    """A crawl whose first attempt gave each URL the id of the other."""
    job = running(database)
    urls.record(database, job, Checkpoint([url(1), url(2)], [settled(1), settled(2)], [result(1), result(2)]))
    finished(database, job)
    died = Archive(data, job.id, 1)
    died.add(1, page(B, "B of the dead attempt"))
    died.add(2, page(A, "A of the dead attempt"))
    died.add(1, page(A, "older A"))
    died.close()
    archive = Archive(data, job.id, 2)
    archive.add(1, page(A, "A"))
    archive.add(2, page(B, "older B"))
    archive.add(2, page(B, "B"))
    archive.close()
    return job


def test_an_export_has_each_result_once_with_its_own_page(database: Database, tmp_path: Path) -> None:
    stream = io.BytesIO()
    assert write_warc(database, tmp_path, crawled(database, tmp_path).id, Filter(), stream) == 2
    stream.seek(0)
    found = [
        (record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read())
        for record in ArchiveIterator(stream)
        if record.rec_type == "response"
    ]
    assert found == [(A, b"<h1>A</h1>"), (B, b"<h1>B</h1>")]


def test_extract_reads_the_page_of_each_result(database: Database, tmp_path: Path) -> None:
    job = crawled(database, tmp_path)
    asked = NewJob("extract", {"job": job.id, "fields": {"heading": {"css": "h1"}}, "content": "none"})
    again = run_here(database, Settings(data=tmp_path), asked, logging.getLogger("test"))
    assert again.status is Status.COMPLETED, again
    rows = {row.final_url: row.data["fields"]["heading"] for row in results.every(database, again.id)}
    assert rows == {A: "A", B: "B"}

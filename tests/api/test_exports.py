"""Results as files to download: every form, made while it is sent."""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from warcio.archiveiterator import ArchiveIterator

from silkline.model.database import Database
from silkline.model.job import End, Job, NewJob
from silkline.model.ledger import Checkpoint
from silkline.page_files import path_of
from silkline.sample.server import SampleServer
from silkline.store import jobs, urls
from tests.store.given import deciding, finished, result, running, settled, url
from tests.support.served import Client, Served
from tests.support.unread_downloads import large_job, unread

PAGES = 60
LARGE = "w\u00f6rter " * 20_000


def crawled(database: Database) -> Job:
    """Some megabytes of pages, two of which have the same file name, and one that failed."""
    job = running(database, kind="extension", request_url="https://example.com/a b")
    stored = []
    for id in range(1, PAGES + 1):
        address = {1: "http://example.com/start", 2: "https://example.com/start"}.get(id, f"https://example.com/{id}")
        data = json.dumps({"title": f"=Page {id}", "markdown": LARGE})
        stored.append(result(id, data=data, final_url=address, original_url=address, success=id != 3))
    ids = range(1, PAGES + 1)
    urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], stored))
    return job


def read_jsonl(body: bytes) -> int:
    rows = [json.loads(line) for line in body.splitlines()]
    assert rows[0]["data"]["markdown"] == LARGE
    return len(rows)


def read_csv(body: bytes) -> int:
    csv.field_size_limit(10_000_000)
    rows = list(csv.DictReader(io.StringIO(body.decode(), newline="")))
    assert rows[0]["title"] == "'=Page 1", "no cell is a formula"
    return len(rows)


def read_zip(body: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(body)) as packed:
        assert packed.testzip() is None
        names = packed.namelist()
        assert len(set(names)) == len(names) == PAGES - 1, "each page that succeeded has a file of its own"
        assert {name.split("/")[1] for name in names} == {"example.com"}
        assert LARGE.strip() in packed.read(names[0]).decode()
    return PAGES


def read_parquet(body: bytes) -> int:
    rows: int = pyarrow.parquet.read_table(io.BytesIO(body)).num_rows
    return rows


def read_chunks(body: bytes) -> int:
    rows = [json.loads(line) for line in body.splitlines()]
    first = [row for row in rows if row["url"] == rows[0]["url"]]
    assert " ".join(row["text"] for row in first).split() == LARGE.split()
    assert [row["position"] for row in first] == list(range(len(first)))
    assert len({row["id"] for row in rows}) == len(rows)
    assert max(len(row["text"]) for row in rows) <= 800
    return len({row["url"] for row in rows}) + 1  # without the one that failed


def read_sitemap(body: bytes) -> int:
    assert body.endswith(b"</urlset>\n")
    return body.count(b"<loc>") + 1  # without the one that failed


@pytest.mark.parametrize(
    ("form", "ending", "read"),
    [
        ("jsonl", ".jsonl", read_jsonl),
        ("csv", ".csv", read_csv),
        ("md", ".zip", read_zip),
        ("parquet", ".parquet", read_parquet),
        ("sitemap", ".xml", read_sitemap),
        ("chunks", ".chunks.jsonl", read_chunks),
    ],
)
def test_every_form_is_whole(
    client: Client, database: Database, form: str, ending: str, read: Callable[[bytes], int]
) -> None:
    job = crawled(database)
    answer = client.get(f"/v1/jobs/{job.id}/export?format={form}")
    assert answer.status == 200, answer
    assert answer.headers["content-disposition"] == f'attachment; filename="example.com-{job.id[-8:]}{ending}"'
    assert "content-length" not in answer.headers, "it is made while it is sent"
    assert read(answer.body) == PAGES


def test_the_archive_of_a_job_that_kept_its_answers(
    client: Client, served: Served, database: Database, site: SampleServer
) -> None:
    payload: dict[str, Any] = {
        "url": f"{site.url}birds/",
        "allow_private": ["127.0.0.0/8"],
        "speed": "max",
        "warc": True,
    }
    job, _ = jobs.enqueue(database, NewJob("page", payload, request_url=payload["url"]))
    client.wait_for(job.id, "completed")
    body = client.get(f"/v1/jobs/{job.id}/export?format=warc").body
    kinds = [record.rec_type for record in ArchiveIterator(io.BytesIO(body))]
    assert kinds == ["warcinfo", "response"]
    assert b"Arctic tern" in gzip.decompress(body)


def test_what_there_is_not_is_said(client: Client, database: Database) -> None:
    job = crawled(database)
    client.get(f"/v1/jobs/{job.id}/export?format=warc").problem(422, "invalid", "this job has no WARC here")
    client.get(f"/v1/jobs/{job.id}/export?format=docx").problem(422, "invalid", "format")
    client.get("/v1/jobs/019a8f6e-5dc2-7340-86fe-b900fe2551e3/export").problem(404, "not-found")


@pytest.mark.parametrize("path", ["results?format=jsonl", "export?format=jsonl", "export?format=chunks"])
def test_a_download_ends_quietly_when_its_job_is_deleted(
    client: Client, served: Served, database: Database, path: str
) -> None:
    job = large_job(database)
    finished(database, job)
    before = len(served.log)
    with unread(client, f"/v1/jobs/{job.id}/{path}") as ends:
        assert client.ask("DELETE", f"/v1/jobs/{job.id}").status == 204
        came = b"".join(iter(lambda: ends.recv(1 << 20), b""))
    assert not came.endswith(b"0\r\n\r\n"), "nobody takes it for the whole file"
    assert "Traceback" not in served.log[before:]


def with_files(database: Database, data: Path) -> Job:
    """A page with a screenshot that is here, and a PDF on another machine; one whose screenshot failed."""
    job = running(database, kind="extension", request_url="https://example.com/")
    here = {"screenshot": {"type": "image/png", "bytes": 7, "host": "here"}}
    there = {"pdf": {"type": "application/pdf", "bytes": 9, "host": "machine-7"}}
    failed = {"screenshot": {"error": "it was not ready after 15 s"}}
    address = "https://example.com/start"
    stored = [
        result(1, final_url=address, metadata=json.dumps({"files": {**here, **there}})),
        result(2, final_url=f"{address}/2", metadata=json.dumps({"files": failed})),
    ]
    urls.record(database, job, Checkpoint([url(1), url(2)], [settled(1), settled(2)], stored))
    path = path_of(data, job.id, 1, "screenshot")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"picture")
    return job


def test_the_files_of_a_page(client: Client, served: Served, database: Database) -> None:
    job = with_files(database, served.data)
    got = client.get(f"/v1/jobs/{job.id}/files/1/screenshot")
    assert (got.status, got.body, got.headers["content-type"]) == (200, b"picture", "image/png")
    assert got.headers["content-disposition"].endswith('-1.png"')
    assert got.headers["x-content-type-options"] == "nosniff"
    client.get(f"/v1/jobs/{job.id}/files/1/pdf").problem(404, "not-found", "data directory of machine-7")
    client.get(f"/v1/jobs/{job.id}/files/2/screenshot").problem(404, "not-found", "not ready after 15 s")
    client.get(f"/v1/jobs/{job.id}/files/2/pdf").problem(404, "not-found", "has no pdf")
    client.get(f"/v1/jobs/{job.id}/files/3/screenshot").problem(404, "not-found", "has no screenshot")
    assert client.get(f"/v1/jobs/{job.id}/files/1/..%2F1.png").status in (404, 422)

    shown = client.get(f"/jobs/{job.id}/page/1").text
    assert f'<img src="/v1/jobs/{job.id}/files/1/screenshot"' in shown
    assert "No pdf: it is in the data directory of machine-7" in shown
    with zipfile.ZipFile(io.BytesIO(client.get(f"/v1/jobs/{job.id}/export?format=md").body)) as packed:
        (picture,) = [name for name in packed.namelist() if name.endswith("example.com/start.png")]
        assert packed.read(picture) == b"picture"
        assert 'screenshot: "start.png"' in packed.read(picture.replace(".png", ".md")).decode()

    assert client.post(f"/v1/jobs/{job.id}/cancel").status == 200
    jobs.finish(database, job, deciding(database, End.CANCELLED))
    assert client.ask("DELETE", f"/v1/jobs/{job.id}").status == 204
    assert not path_of(served.data, job.id, 1, "screenshot").parent.exists()

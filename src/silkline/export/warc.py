"""One WARC file out of a job's archive: an answer for each page that was stored, and what is wanted of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from silkline import __version__
from silkline.errors import UsageError
from silkline.export.rows import Filter
from silkline.store import results
from silkline.store.database import Database
from silkline.warc_files import folder_of, records


def load() -> Any:
    """The library's writer, if it is there."""
    try:
        from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError("WARC needs warcio, not installed here: pip install 'silkline[warc]'") from error
    return WARCWriter


def write_warc(database: Database, data: Path, job_id: str, wanted: Filter, stream: BinaryIO) -> int:
    """Write the file; how many pages. A page that two attempts fetched is in it once, as it came first."""
    return sum(1 for _ in written_records(database, data, job_id, wanted, stream))


def written_records(
    database: Database, data: Path, job_id: str, wanted: Filter, stream: BinaryIO | io.RawIOBase
) -> Iterator[int]:
    """Write the file, one page at each step; the id of the URL."""
    if not folder_of(data, job_id).is_dir():
        raise UsageError("this job kept no answers: WARC is for jobs that were run with --warc, on this machine")
    writer = load()(stream, gzip=True)
    writer.write_record(writer.create_warcinfo_record(None, {"software": f"Silkline {__version__}", "job": job_id}))
    written: set[int] = set()
    for url_id, record in records(data, job_id):
        if url_id in written:
            continue
        result = results.by_url_id(database, job_id, url_id)
        if result is None or not wanted.wants(result):
            continue
        written.add(url_id)
        headers = record.rec_headers
        about = {name: headers.get_header(name) for name in ("WARC-Date", "WARC-IP-Address", "WARC-Record-ID")}
        copy = writer.create_warc_record(
            headers.get_header("WARC-Target-URI"),
            "response",
            payload=io.BytesIO(record.payload),
            http_headers=record.http_headers,
            warc_headers_dict={name: value for name, value in about.items() if value},
        )
        writer.write_record(copy)
        yield url_id

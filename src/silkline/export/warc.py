"""Makes one WARC file from the archive of a job, with the response of each stored page that is wanted."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from silkline import __version__
from silkline.errors import UsageError
from silkline.export.rows import Filter
from silkline.model.database import Database
from silkline.store import results
from silkline.warc_files import folder_of, newest_records, response_record


def load() -> Any:
    """Import the writer of the library, or say how to install it."""
    try:
        from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError("WARC needs warcio, which is not installed: pip install 'silkline[warc]'") from error
    return WARCWriter


def write_warc(database: Database, data: Path, job_id: str, wanted: Filter, stream: BinaryIO) -> int:
    """Write the file and return the number of pages. If two attempts fetched a page, only the last copy is written."""
    return sum(written_records(database, data, job_id, wanted, stream))


def written_records(
    database: Database, data: Path, job_id: str, wanted: Filter, stream: BinaryIO | io.RawIOBase
) -> Iterator[bool]:
    """Write the file one page at a time, and yield for each response whether it was written."""
    if not folder_of(data, job_id).is_dir():
        raise UsageError(
            "this machine has no raw responses of this job: WARC needs a job that ran with --warc on this machine"
        )
    writer = load()(stream, gzip=True)
    writer.write_record(writer.create_warcinfo_record(None, {"software": f"Silkline {__version__}", "job": job_id}))
    for found in newest_records(data, job_id):
        result = results.by_url_id(database, job_id, found.url_id)
        if result is None or found.url != result.final_url or not wanted.wants(result):
            yield False
            continue
        del result  # a client that reads slowly holds no more than what was written
        headers = found.record.rec_headers
        about = {name: headers.get_header(name) for name in ("WARC-Date", "WARC-IP-Address", "WARC-Record-ID")}
        about = {name: value for name, value in about.items() if value}
        stream.write(response_record(found.url, found.record.http_headers, found.record.payload, about))
        found.record.payload = b""
        yield True

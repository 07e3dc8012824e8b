"""The raw answers of a crawl in WARC files, for jobs with the option `warc`.

There is one file for each process of an attempt, and records are only appended. A process that dies leaves at most one
incomplete record, and its replacement starts a new file. Needs warcio. The files are in the data directory of this
machine, not in the database.
"""

from __future__ import annotations

import io
import logging
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from isal import isal_zlib

from silkline import page_files
from silkline.errors import Permanent
from silkline.model.fetched import Fetched
from silkline.model.job import Job
from silkline.private_files import make_private_file, make_private_folder

ID_HEADER: Final = "WARC-Silkline-Id"
# The body is stored decoded, so these headers would be wrong. Their values are kept under another name.
_ON_THE_WIRE: Final = ("content-encoding", "transfer-encoding", "content-length")
# Level 9 of zlib, which warcio uses, takes 65 s for 20 MB of a hostile page. These levels never take long.
_LEVEL: Final = 2
_GZIP: Final = 31
_MOST_BODY: Final = 256 << 20
_MOST_ID: Final = (1 << 63) - 1
_DIGITS: Final = 19
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_log = logging.getLogger("silkline.warc")


class Record(NamedTuple):
    """One answer from an archive: the ledger's id, and warcio's record.

    An answer is written before its URL is stored in the ledger. So after a crash another URL may have its id: a reader
    takes a record only if `url` is the URL of the result with this id.
    """

    url_id: int
    record: Any

    @property
    def url(self) -> str:
        return str(self.record.rec_headers.get_header("WARC-Target-URI"))


def folder_of(data: Path, job_id: str) -> Path:
    """The folder of the archive of a job."""
    return data / "warc" / job_id


class Archive:
    """Writes the answers of one fetcher of one attempt."""

    def __init__(self, data: Path, job_id: str, run_lease: int, fetcher: int = 0) -> None:
        try:
            import warcio  # type: ignore[import-untyped] # noqa: F401 - so that a job fails at its start
        except ImportError as error:
            raise Permanent(
                "WARC files need warcio, not installed here: pip install 'silkline[warc]', or leave `warc` out"
            ) from error
        folder = folder_of(data, job_id)
        make_private_folder(folder)
        file = folder / f"{run_lease:06d}-{fetcher:03d}-{os.getpid()}.warc.gz"
        make_private_file(file)
        self._stream = file.open("ab")
        self._failures = 0

    def add(self, url_id: int, fetched: Fetched) -> None:
        """Append one answer. It is written when this returns, before the checkpoint that stores its result.

        An answer that has no form as a record is left out, and costs nothing else. A full disk is an error.
        """
        try:
            record = _record(url_id, fetched)
        except OSError:
            raise
        except Exception as error:
            self._failures += 1
            if self._failures == 1:
                _log.warning("the archive lacks %r, and perhaps others: %s", fetched.url, type(error).__name__)
            return
        self._stream.write(record)
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()


def _record(url_id: int, fetched: Fetched) -> bytes:
    from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]

    headers = StatusAndHeaders(_status(fetched.status), _headers(fetched), protocol="HTTP/1.1")
    about = {"WARC-Date": _now(), ID_HEADER: str(url_id)}
    if fetched.address:
        about["WARC-IP-Address"] = fetched.address
    return response_record(fetched.url, headers, fetched.body, about)


def response_record(url: str, headers: Any, body: bytes, about: dict[str, str]) -> bytes:
    """One complete record, made in memory, so that an error leaves no part of it in a file.

    Without the length, warcio copies a large body to a temporary file, which a confined fetcher must not create.
    """
    from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

    made = io.BytesIO()
    writer = WARCWriter(made, gzip=False)
    record = writer.create_warc_record(
        url, "response", io.BytesIO(body), len(body), http_headers=headers, warc_headers_dict=about
    )
    writer.write_record(record)
    packed: bytes = isal_zlib.compress(made.getbuffer(), _LEVEL, wbits=_GZIP)
    return packed


def open_archive(place: tuple[str, str, int] | None, fetcher: int = 0) -> Archive | None:
    """The archive at a place: data directory, job and lease."""
    if place is None:
        return None
    data, job_id, run_lease = place
    return Archive(Path(data), job_id, run_lease, fetcher)


def place_of(data: Path, job: Job) -> tuple[str, str, int]:
    """The place of the archive of an attempt. The shards of a crawl have one archive on each machine."""
    return str(data.absolute()), job.id if job.shard is None else str(job.parent_id), job.run_lease


def remove(data: Path, logs: Path, job_id: str) -> None:
    """Remove the files of a job from this machine's disk: its archive, the files of its pages and its log files."""
    page_files.remove(data, job_id)
    shutil.rmtree(folder_of(data, job_id), ignore_errors=True)
    for suffix in (".log", ".log.1"):
        (logs / f"{job_id}{suffix}").unlink(missing_ok=True)


def records(data: Path, job_id: str) -> Iterator[Record]:
    """Every complete record of a job's archive, in the order of writing.

    What is no record of ours ends its file: the process that wrote it died, or a page had taken it over.
    """
    for path in _files(data, job_id):
        yield from _records_in(path)


def newest_records(data: Path, job_id: str) -> Iterator[Record]:
    """The same, of each id and URL only the last record. Reads the archive twice, because a body may be large.

    Records that are added meanwhile are left out.
    """
    files, last = _files(data, job_id), dict[int, tuple[int, int]]()
    for number, path in enumerate(files):
        for place, found in enumerate(_records_in(path)):
            last[_key(found)] = number, place
    for number, path in enumerate(files):
        for place, found in enumerate(_records_in(path)):
            if last.get(_key(found)) == (number, place):
                yield found


def _key(found: Record) -> int:
    return hash((found.url_id, found.url))  # a third of the memory of the URL; its seed is secret


def _files(data: Path, job_id: str) -> list[Path]:
    """In the order of the attempts. A fetcher that replaces a dead one of the same attempt writes later."""
    found = folder_of(data, job_id).glob("*.warc.gz")
    return sorted(found, key=lambda path: (int(path.name.partition("-")[0]), path.stat().st_mtime_ns, path.name))


def _records_in(path: Path) -> Iterator[Record]:
    from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

    with path.open("rb") as stream:
        records = iter(ArchiveIterator(stream))
        while (found := _next_record(records, path)) is not None:
            yield found


def _next_record(records: Iterator[Any], path: Path) -> Record | None:
    try:
        record = next(records)
        size = _number(record.http_headers.get_header("Content-Length"), _MOST_BODY)
        body = record.content_stream().read(size + 1)
        if len(body) != size:
            return None
        record.payload = body
        return Record(_number(record.rec_headers.get_header(ID_HEADER), _MOST_ID), record)
    except (StopIteration, EOFError):
        return None
    except OSError:
        raise
    except Exception as error:
        _log.warning("%s is read only up to a record that is not ours: %s", path.name, type(error).__name__)
        return None


def _number(text: str | None, most: int) -> int:
    """A number of a header. Raises a ValueError if there is none, or a larger one."""
    if not text or len(text) > _DIGITS or not text.isascii() or not text.isdigit() or int(text) > most:
        raise ValueError
    return int(text)


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"


def _headers(fetched: Fetched) -> list[tuple[str, str]]:
    """Names that are not allowed in HTTP are left out: others could end a line of the record, or not be written."""
    kept = []
    for name, value in fetched.headers.items():
        if _TOKEN.fullmatch(name):
            kept.append((f"x-archive-orig-{name}" if name in _ON_THE_WIRE else name, _ascii(value)))
    return [*kept, ("Content-Length", str(len(fetched.body)))]


def _ascii(value: str) -> str:
    """Without line breaks, and other characters in percent form: warcio writes no others."""
    value = value.replace("\r", " ").replace("\n", " ")
    return value if value.isascii() else _NOT_ASCII.sub(lambda found: quote(found[0], errors="replace"), value)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""Exports as a stream of bytes, for downloads. Written bytes are sent at once, so little memory is needed."""

from __future__ import annotations

import functools
import importlib.util
import io
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from silkline.export.field_columns import columns_of
from silkline.export.folder import document, place_of
from silkline.export.large_rows import LargeRow, announcement_of_bytes
from silkline.export.markdown_chunks import CHUNK_SIZE
from silkline.export.open import TABLES, to_stream
from silkline.export.other_tables import announced_table
from silkline.export.parquet import Parquet
from silkline.export.row_files import row_pieces, stopping
from silkline.export.rows import Filter, announced
from silkline.export.table import COLUMNS, DataColumns, Table
from silkline.export.zip_stream import DEFLATED, STORED, ZipStream
from silkline.model.database import Database
from silkline.model.url import url_key
from silkline.page_files import stored_files
from silkline.store import jobs
from silkline.store.results import Result
from silkline.warc_files import folder_of

# The file extension and media type of each format. Markdown is a folder of files, so it is sent as a zip file.
DOWNLOADS: Final = {
    "jsonl": (".jsonl", "application/x-ndjson"),
    "csv": (".csv", "text/csv; charset=utf-8"),
    "md": (".zip", "application/zip"),
    "parquet": (".parquet", "application/vnd.apache.parquet"),
    "sitemap": (".xml", "application/xml"),
    "warc": (".warc.gz", "application/gzip"),
    "links": (".links.jsonl", "application/x-ndjson"),
    "chunks": (".chunks.jsonl", "application/x-ndjson"),
}
LIBRARIES: Final = {"parquet": "pyarrow", "warc": "warcio"}
PIECE: Final = 64 << 10


class GivenAway(io.RawIOBase):
    """An append-only file whose content is taken out while it is written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._place = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        part = bytes(data)  # type: ignore[call-overload]
        self._parts.append(part)
        self._held += len(part)
        self._place += len(part)
        return len(part)

    def tell(self) -> int:
        return self._place

    def take(self, least: int = 1) -> bytes:
        """The bytes written since the last call, if there are enough of them."""
        if self._held < least:
            return b""
        taken = b"".join(self._parts)
        self._parts, self._held = [], 0
        return taken


class PageFileToAdd(NamedTuple):
    """A screenshot or a PDF, and its place in the zip file."""

    place: PurePosixPath
    path: Path
    moment: datetime


class MarkdownZip:
    """The folder of Markdown files as a zip file. All files are in one top folder, which unpacking creates."""

    def __init__(self, file: GivenAway, folder: str, data: Path) -> None:
        self._data = data
        self._zip = ZipStream(file)
        self._folder = folder
        self._written: set[int] = set()  # keys of names, which take less memory

    def write(self, result: Result) -> list[PageFileToAdd]:
        """Write the page. Returns its other files, which may be large."""
        if not result.success:
            return []
        place = PurePosixPath(self._folder, place_of(result.final_url))
        if url_key(str(place)) in self._written:  # for example if http and https both have the page
            place = place.with_name(f"{place.stem}-{url_key(result.final_url) & 0xFFFFFFFF:08x}.md")
        if url_key(str(place)) in self._written:
            place = place.with_name(f"{place.stem}-{result.url_id}.md")
        self._written.add(url_key(str(place)))
        files = stored_files(self._data, result.job_id, result.url_id, result.metadata)
        names = {name: place.name.removesuffix(".md") + path.suffix for name, path in files.items()}
        self._zip.add(str(place), result.created_at, document(result, names).encode("utf-8", "replace"), DEFLATED)
        return [PageFileToAdd(place.with_name(names[name]), path, result.created_at) for name, path in files.items()]

    def add(self, file: PageFileToAdd) -> None:
        self._zip.add(str(file.place), file.moment, file.path.read_bytes(), STORED)

    def ending(self) -> Iterator[None]:
        """Write the list of the files, a part at a time."""
        yield from self._zip.ending()

    def close(self) -> None:
        self._zip.close()


def offered(data: Path, job_id: str) -> list[str]:
    """The formats that this machine can write for a job: some need a library, WARC needs the files of this machine."""
    missing = {form for form, library in LIBRARIES.items() if not _installed(library)}
    if not folder_of(data, job_id).is_dir():
        missing.add("warc")
    return [form for form in DOWNLOADS if form not in missing]


@functools.cache
def _installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def download(
    database: Database, data: Path, job_id: str, form: str, name: str, *, chunk_size: int = CHUNK_SIZE
) -> Generator[bytes | LargeRow, None, None]:
    """The results of a job in this format, in pieces; an empty one if there is nothing to send yet.

    Announces each large row: it is read when the next piece is asked for, and dropped when it is written, if it can be
    written at once.
    `name` is the folder inside an archive. Raises `NotFound` if the job is removed meanwhile.
    """
    try:
        yield from _pieces(database, data, job_id, form, name, chunk_size)
    except Exception:
        jobs.outline(database, job_id)  # without the job, whatever is missing was removed with it
        raise


def _at_once(database: Database, job_id: str, write: Callable[[Result], object]) -> Iterator[LargeRow | None]:
    """Write each result. It is dropped before what was written is sent."""
    large: LargeRow | None = None
    for item in announced(database, job_id, Filter()):
        if isinstance(item, LargeRow):
            large = item
            yield item
            continue
        write(item)
        del item
        if large is not None:
            large.is_dropped()
            large = None
        yield None


def _in_rows(database: Database, job_id: str, writer: Table | Parquet) -> Iterator[LargeRow | None]:
    """Write each result a few rows at a time: all of them may be very much longer than the result."""
    for item in announced(database, job_id, Filter()):
        if isinstance(item, LargeRow):
            yield item
        else:
            yield from writer.parts(item)


def _pieces(
    database: Database, data: Path, job_id: str, form: str, name: str, chunk_size: int
) -> Generator[bytes | LargeRow, None, None]:
    file = GivenAway()
    if form == "warc":
        from silkline.export.warc import written_records

        for _ in written_records(database, data, job_id, Filter(), file):
            yield file.take(PIECE)
    elif form == "md":
        with closing(MarkdownZip(file, name, data)) as packed:
            files: list[PageFileToAdd] = []
            for large in _at_once(database, job_id, lambda result: files.extend(packed.write(result))):
                yield large or file.take(PIECE)
                while files:
                    yield announcement_of_bytes(files[0].path.stat().st_size) or b""
                    packed.add(files.pop(0))
                    yield file.take(PIECE)
            for _ in packed.ending():
                yield file.take(PIECE)
    elif form in TABLES:
        rows, columns = announced_table(database, job_id, form, Filter(), chunk_size=chunk_size)
        announcements: list[LargeRow] = []
        for _ in row_pieces(stopping(rows, announcements), columns, "jsonl", file):  # type: ignore[arg-type]
            yield file.take(PIECE)
            while announcements:
                yield announcements.pop()
    else:
        fields = columns_of(database, job_id, COLUMNS)
        others = DataColumns(fields)
        for large in _at_once(database, job_id, others.see) if form == "csv" else ():
            yield large or b""
        with to_stream(form, file, fields, others) as writer:  # type: ignore[arg-type]
            several = fields.rows and isinstance(writer, Table | Parquet)
            written = _in_rows(database, job_id, writer) if several else _at_once(database, job_id, writer.write)  # type: ignore[arg-type]
            for large in written:
                yield large or file.take(PIECE)
    jobs.outline(database, job_id)  # without the job, the file is not complete
    yield file.take()

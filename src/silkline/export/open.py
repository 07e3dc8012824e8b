"""Opens the writer for an export format. A file gets its name only when it is complete.

The module of a format is imported only when it is used, so that `silkline results` starts fast.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from silkline.errors import UsageError
from silkline.export.field_columns import FieldColumns
from silkline.export.rows import Writer
from silkline.export.table import DataColumns, Table
from silkline.part_files import whole_file

FORMATS: Final = ("jsonl", "csv", "md", "parquet", "sitemap", "warc", "links", "chunks")
PAGES_ONLY: Final = frozenset({"md", "sitemap"})
"""The formats that have only pages, no failed results."""
TABLES: Final = {"links": ("link", "links"), "chunks": ("chunk", "chunks")}
"""The formats that do not have one row for each result, with the name of one row and of several."""
_SUFFIXES: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet", ".xml": "sitemap"}
_WARC: Final = (".warc", ".warc.gz")


def format_of(name: str | None) -> str:
    """The format for a file name; JSON lines if the name does not tell."""
    return "jsonl" if name is None else _format_of(name) or "jsonl"


def refuse_to_overwrite(form: str, path: Path, *, force: bool) -> None:
    """Refuse to overwrite existing files, except with `force`."""
    if form == "md":
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file, but Markdown needs a folder: give a new name")
        if not force and path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path} exists and is not empty; give a new folder, or write into it with --force")
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a file name, or use --format md")
    if force or _is_device(path):
        return
    parts = path.parent.glob(f"{glob.escape(path.stem)}-[0-9]*{glob.escape(path.suffix or '.xml')}")
    there = [path] if path.exists() or path.is_symlink() else []
    there += [part for part in parts if form == "sitemap" and part.stem[len(path.stem) + 1 :].isdecimal()]
    if there:
        raise UsageError(f"{there[0]} exists; give another name, or overwrite it with --force")


def writable(name: str, *, force: bool = False) -> str:
    """The format for a file name; an error if the file cannot be written. Called before a crawl starts, so that a wrong
    name is found before hours of crawling.
    """
    form, path = _format_of(name), Path(name)
    if form is None:
        endings = ", ".join((*_SUFFIXES, *_WARC))
        raise UsageError(f"{name}: the format is not known from this name; use {endings}, or / at the end for a folder")
    refuse_to_overwrite(form, path, force=force)
    if form == "md":
        return form
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{name} cannot be written: there is no folder {path.absolute().parent}")
    if form == "parquet":
        from silkline.export import parquet

        parquet.load()
    elif form == "warc":
        from silkline.export import warc

        warc.load()
    return form


def _format_of(name: str) -> str | None:
    if name.endswith("/") or Path(name).is_dir():
        return "md"
    if name.lower().endswith(_WARC):
        return "warc"
    return _SUFFIXES.get(Path(name).suffix.lower())


@contextmanager
def to_stream(
    form: str, stream: BinaryIO, fields: FieldColumns | None = None, columns: DataColumns | None = None
) -> Iterator[Writer]:
    """Open a writer to a stream, such as stdout. `fields`: the columns of the fields of the job.

    `columns`: those of the other data. Only CSV needs them.
    """
    if form == "md":
        raise UsageError("Markdown is written to a folder: give its name with -o")
    with ExitStack() as files:
        writer = _writer(form, stream, None, fields, columns, files)
        yield writer
        writer.close()


@contextmanager
def to_path(
    form: str,
    path: Path,
    *,
    force: bool = False,
    fields: FieldColumns | None = None,
    columns: DataColumns | None = None,
    data: Path | None = None,
) -> Iterator[Writer]:
    """Open a writer to a file, or for Markdown a folder. The file gets its name when it is complete.

    `data`: the data directory, from which a folder gets the screenshots and PDFs of pages.
    """
    refuse_to_overwrite(form, path, force=force)
    if form == "md":
        from silkline.export.folder import ResultFolder

        folder = ResultFolder(path, force=force, data=data)
        yield folder
        folder.close()
        return
    with ExitStack() as files:
        writer = _writer(form, files.enter_context(output_file(path)), path, fields, columns, files)
        yield writer
        writer.close()


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """The file of an export: it gets its name when it is complete. A device or a pipe is written to directly."""
    try:
        with path.open("wb") if _is_device(path) else whole_file(path) as stream:
            yield stream
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _is_device(path: Path) -> bool:
    """Whether the path is a device or pipe, such as /dev/null, which is written to and not replaced.

    Not if another user made it: in a folder where others may write, their link could lead to a disk.
    """
    if not path.exists() or path.is_file() or path.is_dir():
        return False
    others_write = path.absolute().parent.stat().st_mode & 0o022
    return not others_write or path.lstat().st_uid in (0, os.geteuid())


def _writer(
    form: str,
    stream: BinaryIO,
    path: Path | None,
    fields: FieldColumns | None,
    columns: DataColumns | None,
    files: ExitStack,
) -> Writer:
    """`files`: ends when the export is complete, or has failed."""
    match form:
        case "jsonl":
            from silkline.export.jsonl import JsonLines

            return JsonLines(stream)
        case "csv":
            return Table(stream, fields, columns)
        case "parquet":
            from silkline.export.parquet import Parquet

            return Parquet(stream, fields)
        case "sitemap":
            from silkline.export.sitemap import SitemapFile

            return SitemapFile(stream, path, files)
    raise UsageError(f"unknown format {form!r}; the formats are {', '.join(FORMATS)}")

"""Opens the writer for a form of export, and puts a file in its place only when it is whole.

A form is imported when it is asked for: `silkline results` must not pay for all of them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from silkline.errors import UsageError
from silkline.export.rows import Writer

FORMATS: Final = ("jsonl", "csv", "md", "parquet", "sitemap", "warc")
_SUFFIXES: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet", ".xml": "sitemap"}


def format_of(path: Path | None) -> str:
    """The form that a file's name asks for."""
    if path is not None and path.name.lower().endswith((".warc.gz", ".warc")):
        return "warc"
    return "jsonl" if path is None else _SUFFIXES.get(path.suffix.lower(), "jsonl")


@contextmanager
def to_stream(form: str, stream: BinaryIO) -> Iterator[Writer]:
    """A writer to an open stream, such as stdout."""
    if form == "md":
        raise UsageError("Markdown is a folder of files: name it with -o")
    writer = _writer(form, stream, None)
    yield writer
    writer.close()


@contextmanager
def to_path(form: str, path: Path) -> Iterator[Writer]:
    """A writer to a file, or for Markdown a folder. The file appears under its name when it is whole."""
    if form == "md":
        from silkline.export.folder import Folder

        yield Folder(path)
        return
    with whole_file(path) as stream:
        writer = _writer(form, stream, path)
        yield writer
        writer.close()


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name when everything is in it, and is gone if something goes wrong."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("w+b") as stream:
            yield stream
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _writer(form: str, stream: BinaryIO, path: Path | None) -> Writer:
    match form:
        case "jsonl":
            from silkline.export.jsonl import JsonLines

            return JsonLines(stream)
        case "csv":
            from silkline.export.table import Table

            return Table(stream)
        case "parquet":
            from silkline.export.parquet import Parquet

            return Parquet(stream)
        case "sitemap":
            from silkline.export.sitemap import Sitemap

            return Sitemap(stream, path)
    raise UsageError(f"there is no format {form!r}; there are {', '.join(FORMATS)}")

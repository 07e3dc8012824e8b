"""The files of rendered pages: screenshots and PDFs, in the data directory of the machine that rendered the page.

The name of a file has the number of its URL in the ledger, so a page that is rendered again after a crash replaces its
file. A file gets its name when it is complete and on the disk, before the checkpoint that stores its result. What a
killed process left is not named like that, and the next attempt removes it. The result names its files, and it alone
says which files count.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from silkline.model.fetched import PDF, SCREENSHOT, Fetched, PageFile
from silkline.model.job import Job
from silkline.part_files import PART, whole_file
from silkline.private_files import FILE_MODE, is_disk_full, make_private_folder

FOLDER: Final = "files"


class FileType(NamedTuple):
    """How the files of one name are stored and sent."""

    suffix: str
    media_type: str


TYPES: Final = {SCREENSHOT: FileType(".png", "image/png"), PDF: FileType(".pdf", "application/pdf")}


class FilePlace(msgspec.Struct, frozen=True):
    """Where the files of an attempt are stored."""

    data: str
    job_id: str
    run_lease: int


def place_of(data: Path, job: Job) -> FilePlace:
    return FilePlace(str(data.absolute()), job.id, job.run_lease)


def folder_of(data: Path, job_id: str) -> Path:
    """The folder of the files of a job."""
    return data / FOLDER / job_id


def path_of(data: Path, job_id: str, url_id: int, name: str) -> Path:
    """The file of a page. It exists if the page was rendered on this machine."""
    return folder_of(data, job_id) / f"{url_id}{TYPES[name].suffix}"


class PageFiles:
    """Stores the files of the pages of one process of an attempt."""

    def __init__(self, place: FilePlace) -> None:
        self._data = Path(place.data)
        self._job_id = place.job_id
        self._run_lease = place.run_lease
        self._host = socket.gethostname()
        folder = folder_of(self._data, place.job_id)
        make_private_folder(folder)
        for left in folder.glob(f"*{PART}"):
            if left.name.partition("-")[0] != f".{place.run_lease}":  # other processes of this attempt are writing
                left.unlink(missing_ok=True)

    def keep(self, url_id: int, fetched: Fetched) -> Fetched:
        """Store the files of a page. Returns the page with the places of its files instead of their bytes."""
        rendered = fetched.rendered
        if rendered is None or not rendered.files:
            return fetched
        files = tuple(self._stored(url_id, file) for file in rendered.files)
        return msgspec.structs.replace(fetched, rendered=msgspec.structs.replace(rendered, files=files))

    def _stored(self, url_id: int, file: PageFile) -> PageFile:
        if file.error:
            return file
        path = path_of(self._data, self._job_id, url_id, file.name)
        try:
            with whole_file(path, label=f"{self._run_lease}-", mode=FILE_MODE, durable=True) as stored:
                stored.write(file.body)
        except OSError as error:
            if is_disk_full(error):
                raise  # the page is fetched again when there is space
            return PageFile(file.name, error=f"it could not be stored: {error.strerror or error}")
        return PageFile(file.name, size=file.size, host=self._host)


def told(files: tuple[PageFile, ...]) -> dict[str, Any]:
    """What a result says about its files."""
    return {
        file.name: {"error": file.error}
        if file.error
        else {"type": TYPES[file.name].media_type, "bytes": file.size, "host": file.host}
        for file in files
    }


class FileNote(NamedTuple):
    """What a result says about one of its files: why it is missing, or its size and the machine that has it."""

    error: str
    size: int
    host: str


def files_named(metadata: Mapping[str, Any]) -> dict[str, FileNote]:
    """What a result says about its files, by name. A plug-in may have stored any value: only what we write counts."""
    named = metadata.get("files")
    notes = {name: named.get(name) for name in TYPES} if isinstance(named, Mapping) else {}
    return {name: note for name, about in notes.items() if (note := _note(about)) is not None}


def _note(about: Any) -> FileNote | None:
    match about:
        case {"error": str(error)} if error:
            return FileNote(error, 0, "")
        case {"bytes": int(size), "host": str(host)}:
            return FileNote("", size, host)
    return None


def stored_files(data: Path, job_id: str, url_id: int, metadata: Mapping[str, Any]) -> dict[str, Path]:
    """The files that a result names and that are on this machine, by name.

    An attempt that died may have left a file of another URL with this id, and the result be of another machine. So a
    file counts only if its size is that of the result.
    """
    named = {name: note for name, note in files_named(metadata).items() if not note.error}
    paths = {name: path_of(data, job_id, url_id, name) for name in named}
    return {name: path for name, path in paths.items() if path.is_file() and path.stat().st_size == named[name].size}


def remove(data: Path, job_id: str) -> None:
    """Remove all files of a job from this machine."""
    shutil.rmtree(folder_of(data, job_id), ignore_errors=True)

"""A folder of Markdown files with the structure of the site: `example.com/docs/start.md`.

File names come from URLs that are not trusted: no file is outside the folder, hidden, or has a reserved name. If the
disk refuses a name, for example because the whole path is too long, the page gets a short one.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote

from silkline.errors import UsageError
from silkline.export.rows import content_of, further_data
from silkline.model.url import url_key
from silkline.page_files import TYPES, stored_files
from silkline.part_files import new_file, whole_file
from silkline.store.results import Result

LONGEST: Final = 120  # bytes
DEEPEST: Final = 16
_SUFFIXES: Final = (".md", *(kind.suffix for kind in TYPES.values()))  # of the files of an export
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.[^/]*)?", re.IGNORECASE)
_REFUSED: Final = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})  # errors that are about a name
_PLAIN: Final = re.compile(r"[a-z0-9_-][a-z0-9._-]*")


class ResultFolder:
    """Writes one file for each successful result. With `force` existing files are overwritten.

    `data`: the data directory with the screenshots and PDFs of pages. They are written beside their page.
    """

    def __init__(self, folder: Path, *, force: bool = False, data: Path | None = None) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder} cannot be created: {error.strerror}") from error
        self._folder = folder
        self._data = data
        self._real = folder.resolve()
        self._force = force
        self._refused = 0
        self._example = ""
        self._written: set[int] = set()  # keys of names, kept only if files may be overwritten

    def write(self, result: Result) -> bool:
        if not result.success:
            return False
        path = self._folder / place_of(result.final_url)
        short = self._folder / f"page-{url_key(result.final_url) & 0xFFFFFFFFFFFFFFFF:016x}.md"
        if self._is_written(result, path) or self._is_written(result, short):
            return True
        self._refused += 1
        self._example = self._example or result.final_url
        return False

    def _is_written(self, result: Result, path: Path) -> bool:
        """Write a page. False: the disk refuses the name."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.parent.resolve().is_relative_to(self._real):
                raise UsageError(f"{path.parent} leads out of {self._folder} through a symbolic link")
            with self._opened(path, result.final_url) as (place, file):
                files = self._copy_files(result, place)
                file.write(document(result, files).encode("utf-8", "replace"))
        except UnicodeEncodeError:  # the file system of this process has no such letters
            return False
        except OSError as error:
            if error.errno in _REFUSED:
                return False
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        return True

    def _copy_files(self, result: Result, page: Path) -> dict[str, str]:
        """Copy the files of a page beside it. Returns the name of each."""
        if self._data is None:
            return {}
        names = {}
        for name, path in stored_files(self._data, result.job_id, result.url_id, result.metadata).items():
            copy = page.with_name(page.name.removesuffix(".md") + path.suffix)
            with path.open("rb") as source, whole_file(copy) as target:
                shutil.copyfileobj(source, target)
            names[name] = copy.name
        return names

    def close(self) -> None:
        """Each file is complete already. Raises an error if some could not be written."""
        if self._refused:
            pages = "1 page was" if self._refused == 1 else f"{self._refused:,} pages were"
            raise UsageError(f"{pages} not written: the disk refuses the names of their files ({self._example})")

    @contextmanager
    def _opened(self, path: Path, url: str) -> Iterator[tuple[Path, BinaryIO]]:
        """The file of a page. If an earlier page has this name, for example with http and https, use another one."""
        marked = path.with_name(f"{path.stem}-{_mark(url)}.md")
        if self._force:
            key = url_key(str(path).casefold())  # the disk may ignore case
            place = marked if key in self._written else path
            self._written.add(key)
        else:
            try:
                new = new_file(path)
            except FileExistsError:
                place = marked
            else:
                try:
                    with new:
                        yield path, new
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
                return
        with whole_file(place) as file:
            yield place, file


def place_of(url: str) -> Path:
    """The path of the file for a URL, relative to the folder."""
    _, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    path, question, _ = path.partition("?")
    *folders, last = path.split("/")
    parts = [_name(host.replace(":", "_")), *(_folder_name(part) for part in folders if part)][:DEEPEST]
    name = _name(last) if last else "index"
    marked = question or name != unquote(last or "index") or len(folders) > DEEPEST
    return Path(*parts, f"{name}-{_mark(url)}.md" if marked else f"{name}.md")


def _name(part: str) -> str:
    """One part of a path as a file name that is valid on every system."""
    text = unicodedata.normalize("NFC", unquote(part, errors="replace"))
    if (
        _PLAIN.fullmatch(text)
        and len(text) <= LONGEST
        and not text.endswith((".", ".md"))
        and not _RESERVED.fullmatch(text)
    ):
        return text
    kept = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text)
    kept = kept.encode()[:LONGEST].decode(errors="ignore").strip("._ ")
    if _RESERVED.fullmatch(kept):
        return f"_{kept}"
    return f"{kept}_" if not kept or kept.endswith(".md") else kept


def _folder_name(part: str) -> str:
    """The same for a folder. It never has the name of a file that an export writes, also where case is ignored."""
    name = _name(part)
    return f"{name}_" if name.lower().endswith(_SUFFIXES) else name


def _mark(url: str) -> str:
    return f"{url_key(url) & 0xFFFFFFFF:08x}"


def document(result: Result, files: Mapping[str, str] | None = None) -> str:
    """A page with its metadata as front matter. JSON strings are valid YAML. `files`: the names of its files."""
    facts = {
        "title": result.data.get("title") or None,
        "url": result.final_url,
        "asked": result.original_url if result.original_url != result.final_url else None,
        "status": result.metadata.get("http_status"),
        "fetched": result.created_at.isoformat(timespec="seconds"),
        **(files or {}),
        "data": {name: value for name, value in further_data(result).items() if name != "title"} or None,
    }
    head = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in facts.items() if value)
    return f"---\n{head}---\n\n{content_of(result).strip()}\n"

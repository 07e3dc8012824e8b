"""A sitemap of the pages of a crawl: at most 50,000 per file, as the protocol requires, and an index of the files."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final
from xml.sax.saxutils import escape

from silkline.model.url import origin_of
from silkline.part_files import whole_file
from silkline.store.results import Result

MOST: Final = 50_000
_XML: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


class SitemapFile:
    """Writes to a stream. With more than 50,000 pages it writes files next to `path`, which becomes their index.

    These files get their names when `files` ends, so that they appear together, or not at all after an error.
    """

    def __init__(
        self, stream: BinaryIO, path: Path | None = None, files: ExitStack | None = None, *, most: int = MOST
    ) -> None:
        self._stream = stream
        self._path = path if files is not None else None
        self._files = files or ExitStack()
        self._most = most
        self._part: BinaryIO = stream
        self._parts: list[Path] = []
        self._origin = ""
        self._written = 0
        self._open()

    def write(self, result: Result) -> bool:
        if not result.success or result.metadata.get("http_status") not in (None, 200):
            return False
        if self._written and self._written % self._most == 0 and self._path is not None:
            self._next_part()
        self._origin = self._origin or origin_of(result.final_url)
        lastmod = result.data.get("lastmod")
        changed = f"<lastmod>{escape(str(lastmod))}</lastmod>" if lastmod else ""
        self._part.write(f"<url><loc>{escape(result.final_url)}</loc>{changed}</url>\n".encode())
        self._written += 1
        return True

    def close(self) -> None:
        self._part.write(b"</urlset>\n")
        if self._parts and self._path is not None:
            self._part.close()
            self._write_index(self._path)
        self._stream.flush()

    def _open(self) -> None:
        self._part.write(f"{_XML}<urlset {_NAMESPACE}>\n".encode())

    def _next_part(self) -> None:
        """Move the first part from the stream to a separate file; the stream is then used for the index."""
        if self._path is None:
            return
        self._part.write(b"</urlset>\n")
        if not self._parts:
            self._stream.flush()
            self._stream.seek(0)
            shutil.copyfileobj(self._stream, self._new_part())
            self._stream.seek(0)
            self._stream.truncate()
        self._part = self._new_part()
        self._open()

    def _new_part(self) -> BinaryIO:
        """The next file. The one before is closed: there may be more files than a process may have open."""
        if self._part is not self._stream:
            self._part.close()
        self._parts.append(self._name(len(self._parts) + 1))
        self._part = self._files.enter_context(whole_file(self._parts[-1]))
        return self._part

    def _name(self, number: int) -> Path:
        path = self._path or Path("sitemap.xml")
        return path.with_name(f"{path.stem}-{number}{path.suffix or '.xml'}")

    def _write_index(self, path: Path) -> None:
        listed = "".join(
            f"<sitemap><loc>{escape(f'{self._origin}/{part.name}')}</loc></sitemap>\n" for part in self._parts
        )
        self._stream.write(f"{_XML}<sitemapindex {_NAMESPACE}>\n{listed}</sitemapindex>\n".encode())

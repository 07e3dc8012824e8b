"""Where a crawl begins: URLs that were typed, and files of URLs or hosts, a million lines and more."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from silkline.errors import UsageError
from silkline.model.url import KEEP_ALL, canonical_links, host_of, url_key
from silkline.store import urls
from silkline.store.database import Database
from silkline.store.urls import NewUrl

CHUNK = 20_000
_NO_BASE = "http://localhost/"  # every line has a scheme of its own by then
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# A host without a dot is meant as one only if it is localhost, or has a port.
_NAME = r"[^\s/?#:@\[\]]"
_HOST = re.compile(
    rf"(localhost|{_NAME}+\.{_NAME}*|{_NAME}+(?=:\d)|\[[0-9a-f:.]+\])(:\d{{1,5}})?([/?#]|$)", re.IGNORECASE
)
_LOCAL = re.compile(r"localhost\b|[\d.]+(:\d+)?(/|$)|\[", re.IGNORECASE)


def with_scheme(address: str) -> str:
    """A URL as people type it: `example.com` is on https, `localhost:8000` and bare addresses on http.

    What is neither a URL nor a host stays as it is, and is refused as no URL by whoever takes it.
    """
    if ("://" in address and _SCHEME.match(address)) or not _HOST.match(address):
        return address
    return f"{'http' if _LOCAL.match(address) else 'https'}://{address}"


def read_lines(file: str) -> Iterator[str]:
    """The lines of a file, or of stdin for `-`, without comments and empty ones."""
    with _open(file) as stream:
        for raw in stream:
            line = raw.decode("utf-8", "replace").strip()
            if line and not line.startswith("#"):
                yield line


@contextmanager
def _open(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(file, "rb")  # noqa: PTH123, SIM115
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    with stream:
        yield stream


class Seeds:
    """Lines made into rows of the ledger, each URL once, with those that are no URLs counted."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.planted = 0
        self.wrong = 0
        self.first_wrong = ""

    def plant(self, database: Database, job_id: str) -> None:
        """Put them into the ledger of a job that has not started, in transactions of bounded size."""
        lines, seen = iter(self._lines), set[int]()
        while chunk := list(itertools.islice(lines, CHUNK)):
            rows = list(self._rows(chunk, seen))
            if rows:
                urls.seed(database, job_id, rows)

    def _rows(self, lines: list[str], seen: set[int]) -> Iterator[NewUrl]:
        for line, url in zip(lines, canonical_links(_NO_BASE, map(with_scheme, lines), KEEP_ALL), strict=True):
            if url is None:
                self.wrong += 1
                self.first_wrong = self.first_wrong or line
                continue
            key = url_key(url)
            if key not in seen:
                seen.add(key)
                self.planted += 1
                yield NewUrl(self.planted, key, url, host_of(url), 0)

"""The seeds of a crawl: typed URLs, and files of URLs or hosts with a million lines or more."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from silkline.cli.typed_url import LOCAL, with_scheme, wrong_scheme
from silkline.errors import UsageError
from silkline.model.database import Database
from silkline.model.ledger import NewUrl
from silkline.model.url import KEEP_ALL, canonical_links, host_of, origin_of, shard_of, url_key
from silkline.model.user_info import REFUSAL, has_user_info
from silkline.store import shard_links, urls

CHUNK = 20_000
_LONGEST_LINE = 1 << 20
_WEB = re.compile(r"https?://", re.IGNORECASE)
_NO_BASE = "http://localhost/"  # not used: every line has a scheme by then


def read_lines(file: str) -> Iterator[str]:
    """The lines of a file, or of stdin for `-`, without comments and empty lines."""
    for line in read_all_lines(file):
        if line and not line.startswith("#"):
            yield line


def typed_urls(given: Iterable[str]) -> Iterator[str]:
    """The URLs of a command line; `-` means those on stdin, one per line."""
    for url in given:
        yield from map(with_scheme, read_lines("-") if url == "-" else [url])


def read_all_lines(file: str) -> Iterator[str]:
    """Every line, so that the caller can number them."""
    with _open(file) as stream:
        try:
            while raw := stream.readline(_LONGEST_LINE):
                if len(raw) == _LONGEST_LINE:
                    raise UsageError(
                        f"{file} has a line of more than {_LONGEST_LINE:,} bytes, so it is no list of URLs"
                    )
                yield raw.decode("utf-8-sig", "replace").strip()
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def _url_of(line: str) -> str:
    """A line of a seeds file as a URL. A line with a wrong scheme is returned unchanged and later counted as wrong."""
    if _WEB.match(line) or wrong_scheme(line):
        return line
    return f"{'http' if LOCAL.match(line) else 'https'}://{line}"


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
    """Writes lines into the ledger, each URL once, and counts the lines that are not URLs.

    With `most_origins` it also collects the origins of the seeds: the headers and cookies of the job are for them.
    """

    def __init__(self, lines: Iterable[str], *, most_origins: int = 0) -> None:
        self._lines = lines
        self._most_origins = most_origins
        self.origins: set[str] = set()
        self.planted = 0
        self.wrong = 0
        self.first_wrong = ""

    def plant(self, database: Database, job_id: str) -> None:
        """Write the seeds into the ledger of a job that has not started, in transactions of limited size."""
        lines, seen = iter(self._lines), set[int]()
        while chunk := list(itertools.islice(lines, CHUNK)):
            rows = list(self._rows(chunk, seen))
            if rows:
                urls.seed(database, job_id, rows)

    def send(self, database: Database, job_id: str, shards: int) -> None:
        """The same for a crawl in several shards: each takes in the seeds of its hosts when it starts."""
        from silkline.model.parcel import packed_seeds

        lines, seen = iter(self._lines), set[int]()
        for number in itertools.count(1):
            chunk = list(itertools.islice(lines, CHUNK))
            if not chunk:
                return
            parts: dict[int, list[str]] = {}
            for row in self._rows(chunk, seen):
                parts.setdefault(shard_of(row.host, shards), []).append(row.url)
            if parts:
                packed = {shard: packed_seeds(several) for shard, several in parts.items()}
                shard_links.plant(database, job_id, number, packed)

    def _rows(self, lines: list[str], seen: set[int]) -> Iterator[NewUrl]:
        for line, url in zip(lines, canonical_links(_NO_BASE, map(_url_of, lines), KEEP_ALL), strict=True):
            if url is not None and has_user_info(_url_of(line)):
                raise UsageError(f"a line of the seeds file {REFUSAL}")
            if url is None:
                self.wrong += 1
                self.first_wrong = self.first_wrong or line
                continue
            hashed = hash(url)  # with a secret seed, unlike the key: no line can be made to hide another one
            if hashed not in seen:
                seen.add(hashed)
                self.planted += 1
                if self._most_origins:
                    self._collect_origin(url)
                yield NewUrl(self.planted, url_key(url), url, host_of(url), 0)

    def _collect_origin(self, url: str) -> None:
        self.origins.add(origin_of(url))
        if len(self.origins) > self._most_origins:
            raise UsageError(
                f"the seeds file has more than {self._most_origins:,} origins, and headers and cookies cannot be sent "
                "to that many: name the origins that get them with --headers-for"
            )

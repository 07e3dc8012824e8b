"""The content of a job as chunks for retrieval, each with its page, its headings, its place and an id.

The id is made of the URL, the headings and the text. So a chunk keeps its id when the page is crawled again, until its
own text changes; what changes elsewhere in the page does not matter.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from silkline.export.large_rows import LargeRow
from silkline.export.markdown_chunks import Heading, chunks_of
from silkline.export.row_files import Columns
from silkline.export.rows import Filter, announced, content_of
from silkline.model.database import Database
from silkline.store.results import Result

_LINK: Final = re.compile(r"!?\[([^\]]*+)\]\([^)]*+\)")
_SIGNS: Final = re.compile(r"[\\*_`~]+")
_ID_BYTES: Final = 16
_LONGEST_HEADING: Final = 300
_LONGEST_TITLE: Final = 1_000


class ChunkRow(NamedTuple):
    """One chunk. `text` is what the content of the result has from the character `start` on."""

    id: str
    url: str
    title: str | None
    position: int
    headings: list[str]
    anchor: str | None
    start: int
    context: str
    text: str


COLUMNS: Final = Columns(ChunkRow._fields, frozenset({"position", "start"}), frozenset({"headings"}))


def chunk_rows(database: Database, job_id: str, wanted: Filter, size: int) -> Iterator[ChunkRow | LargeRow | None]:
    """The chunks of every wanted result of a job, page after page. None after a while without a chunk."""
    for result in announced(database, job_id, wanted):
        if isinstance(result, LargeRow):
            yield result
            continue
        found: ChunkRow | None = None
        for found in chunks_of_result(result, size) if result.success else ():
            yield found
        if found is None:
            yield None


def chunks_of_result(result: Result, size: int) -> Iterator[ChunkRow | None]:
    """The chunks of one page. None after a long part of it without a chunk."""
    content = content_of(result)
    anchors = _Anchors(result.data)
    seen: Counter[bytes] = Counter()
    position = 0
    title = str(result.data.get("title") or "")[:_LONGEST_TITLE] or None
    words: dict[int, str] = {}
    """The words of each heading, by its number: many chunks can have the same headings."""
    markdown = isinstance(result.data.get("markdown"), str) and bool(result.data["markdown"])
    for chunk in chunks_of(content, size, markdown=markdown):
        if chunk is None:
            yield None
            continue
        text = content[chunk.start : chunk.end]
        for heading in chunk.headings:
            if heading.number not in words:
                words[heading.number] = plain(heading.text)
        headings = [words[heading.number] for heading in chunk.headings]
        id = _hash(result.final_url, *headings, text)
        same = id.digest()  # the texts of all chunks would take as much memory as the page
        seen[same] += 1
        id.update(f"\x00{seen[same]}".encode())
        yield ChunkRow(
            id=id.hexdigest(),
            url=result.final_url,
            title=title,
            position=position,
            headings=headings,
            anchor=anchors.of(chunk.headings),
            start=chunk.start,
            context=chunk.context,
            text=text,
        )
        position += 1


def plain(heading: str) -> str:
    """The words of a heading in Markdown."""
    return " ".join(_SIGNS.sub("", _LINK.sub(r"\1", heading[:_LONGEST_HEADING])).split())


class _Anchors:
    """Finds the anchors of headings: the page has them in order, but its content may have only some of them."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._known: defaultdict[str, list[str]] = defaultdict(list)
        """The anchors of each heading, the last one first. A list takes a tenth of the memory of a deque."""
        self._found: dict[int, str] = {}
        headings, anchors = data.get("headings"), data.get("anchors")
        if isinstance(headings, list) and isinstance(anchors, list):
            for number in reversed(range(min(len(headings), len(anchors)))):
                heading, anchor = headings[number], anchors[number]
                if isinstance(heading, list | tuple) and len(heading) == 2 and isinstance(anchor, str):
                    self._known[_key(str(heading[1]))].append(anchor)

    def of(self, headings: tuple[Heading, ...]) -> str | None:
        """The anchor of the last heading that has one."""
        for heading in headings:
            if heading.number not in self._found:
                known = self._known.get(_key(plain(heading.text)))
                self._found[heading.number] = known.pop() if known else ""
        return next((self._found[each.number] for each in reversed(headings) if self._found[each.number]), None)


def _key(heading: str) -> str:
    return "".join(filter(str.isalnum, heading)).lower()


def _hash(*parts: str) -> blake2b:
    return blake2b("\x00".join(parts).encode("utf-8", "replace"), digest_size=_ID_BYTES)

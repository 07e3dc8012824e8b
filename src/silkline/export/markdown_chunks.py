"""Cuts Markdown into chunks for retrieval: at headings, then between paragraphs, then between sentences.

Every chunk is a part of the Markdown as it is, and only white space is left out between two chunks, so nothing is lost
or changed. Code and tables are cut only between lines, and a word is never cut: such a chunk may be longer. The work is
proportional to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

CHUNK_SIZE: Final = 800
SMALLEST: Final = 100
LARGEST: Final = 1_000_000
# The possessive quantifiers keep the patterns linear: a line can have millions of the same character, and nothing else
# of the process runs during a match.
_FENCE: Final = re.compile(r"[ >]*+(?:(?:[-*+]|\d{1,9}+[.)]|:)[ ]++)?(`{3,}+|~{3,}+)[^`]*+")
_ROW: Final = re.compile(r"[ >]*+\|")
_ITEM: Final = re.compile(r"[ ]*+(?:[-*+][ ]|\d{1,9}+[.)][ ]|:[ ]|>|\[\^)")
_SENTENCE: Final = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]*_]*+\s++|[\u3002\uff01\uff1f]\s*+")
_DEEPEST: Final = 6
_MOST_HEADINGS: Final = 5_000
"""Each heading of a page starts a chunk, and a chunk repeats the URL, the title and the headings of its page."""
_PAUSE: Final = re.compile(r"[\u3001\uff0c\uff1b]")
_SPACE: Final = re.compile(r"\s")
_NOT_SPACE: Final = re.compile(r"\S")

Sort = Literal["heading", "code", "table", "text"]


class Heading(NamedTuple):
    """A heading of the page. `number` counts the headings of the page from zero."""

    level: int
    text: str
    number: int


class Chunk(NamedTuple):
    """The part of the Markdown from `start` to `end`."""

    start: int
    end: int
    headings: tuple[Heading, ...]
    """The heading of the chunk, after those above it."""
    context: str
    """What a chunk from the midst of a block needs to be read: the header of its table, or the start of its code.

    At most as long as a chunk, because every chunk of the block repeats it."""


class _Part(NamedTuple):
    """A block, or a part of a block that is too long."""

    start: int
    end: int
    context: str = ""


class _Block(NamedTuple):
    sort: Sort
    start: int
    end: int
    heading: Heading | None = None


def chunks_of(text: str, size: int, *, markdown: bool = True) -> Iterator[Chunk]:
    """The chunks of a text, each at most `size` characters long where it can be cut. Plain text has no headings."""
    path: list[Heading] = []
    section: list[_Block] = []
    for block in _blocks(text, markdown):
        heading = block.heading
        if heading is not None:
            # A heading directly above a deeper one stays with it.
            last = section[-1].heading if section else None
            if section and (last is None or last.level >= heading.level):
                yield from _cut(text, section, size, tuple(path))
                section = []
            while path and path[-1].level >= heading.level:
                path.pop()
            path.append(heading)
        section.append(block)
    yield from _cut(text, section, size, tuple(path))


def _blocks(text: str, markdown: bool) -> Iterator[_Block]:
    """The blocks of the text, without the empty lines between them."""
    sort: Sort | None = None
    start = end = headings = 0
    fence = ""
    for line_start, line_end in _lines(text):
        line = text[line_start:line_end]
        if fence:
            end = line_end
            if _closes(line, fence):
                yield _Block("code", start, end)
                sort, fence = None, ""
            continue
        found = _FENCE.fullmatch(line) if markdown and ("```" in line or "~~~" in line) else None
        heading = _heading(line, headings) if markdown and line[:1] == "#" and headings < _MOST_HEADINGS else None
        wanted = _sort(line, markdown)
        if sort is not None and (found or heading or wanted != sort):
            yield _Block(sort, start, end)
            sort = None
        if found:
            sort, fence, start, end = "code", found[1], line_start, line_end
        elif heading:
            yield _Block("heading", line_start, line_end, heading)
            headings += 1
        elif wanted is not None:
            if sort is None:
                sort, start = wanted, line_start
            end = line_end
    if sort is not None:
        yield _Block(sort, start, end)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _heading(line: str, number: int) -> Heading | None:
    text = line.lstrip("#")
    level = len(line) - len(text)
    if level > _DEEPEST or text[:1] not in ("", " ", "\t"):
        return None
    text = text.strip()
    closed = text.rstrip("#")
    return Heading(level, closed.rstrip() if closed[-1:] in ("", " ") else text, number)


def _sort(line: str, markdown: bool) -> Sort | None:
    if not line or line.isspace():
        return None
    return "table" if markdown and _ROW.match(line) else "text"


def _closes(line: str, fence: str) -> bool:
    mark = line.strip(" >")
    return len(mark) >= len(fence) and not mark.strip(fence[0])


def _cut(text: str, section: list[_Block], size: int, path: tuple[Heading, ...]) -> Iterator[Chunk]:
    """The chunks of one section: as many parts in each as fit."""
    first: _Part | None = None
    end = 0
    filled = False
    for block in section:
        if block.end - block.start <= size:
            parts: Iterator[_Part] = iter((_Part(block.start, block.end),))
        else:
            parts = _parts(text, block, size)
            # A long block starts a chunk of its own, but not without the heading before it.
            if first is not None and filled:
                yield Chunk(first.start, end, path, first.context)
                first, filled = None, False
        for part in parts:
            if first is not None and part.end - first.start > size:
                yield Chunk(first.start, end, path, first.context)
                first, filled = None, False
            if first is None:
                first = part
            end = part.end
            filled = filled or block.heading is None
    if first is not None:
        yield Chunk(first.start, end, path, first.context)


def _parts(text: str, block: _Block, size: int) -> Iterator[_Part]:
    if block.sort in ("code", "table"):
        yield from _rows(text, block, size)
    else:
        for start, end in _items(text, block):
            if end - start <= size:
                yield _Part(start, end)
            else:
                yield from _sentences(text, start, end, size)


def _rows(text: str, block: _Block, size: int) -> Iterator[_Part]:
    """The lines of code or of a table. Each but the first ones has a context of at most `size` characters."""
    lines = [
        (block.start + start, block.start + end)
        for start, end in _lines(text[block.start : block.end])
        if not text[block.start + start : block.start + end].isspace() and end > start
    ]
    heads = 1
    if block.sort == "table":
        rule = text[slice(*lines[1])] if len(lines) > 1 else ""
        heads = 2 if "-" in rule and not rule.strip(" \t>:|-") else 0
    context = "\n".join([text[start:end] for start, end in lines[:heads]])[:size]
    for number, (start, end) in enumerate(lines):
        yield _Part(start, end, context if number >= heads else "")


def _items(text: str, block: _Block) -> Iterator[tuple[int, int]]:
    """The entries of a list, the lines of a quotation; else the whole block."""
    begin = end = block.start
    for start, stop in _lines(text[block.start : block.end]):
        start, stop = start + block.start, stop + block.start
        if start > begin and _ITEM.match(text, start, stop):
            yield begin, end
            begin = start
        end = stop
    yield begin, end


def _sentences(text: str, start: int, end: int, size: int) -> Iterator[_Part]:
    for found in _SENTENCE.finditer(text, start, end):
        yield from _words(text, start, found.end(), size)
        start = found.end()
    yield from _words(text, start, end, size)


def _words(text: str, start: int, end: int, size: int) -> Iterator[_Part]:
    """A sentence; if it is too long, its words in groups."""
    stop = end
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    while True:
        found = _NOT_SPACE.search(text, start, stop)
        if found is None:
            return
        start = found.start()
        if stop - start <= size:
            yield _Part(start, stop)
            return
        cut = _last_gap(text, start, start + size)
        if cut is None:
            gap = _SPACE.search(text, start + size, stop)
            cut = gap.start() if gap else stop
        end = cut
        while text[end - 1].isspace():
            end -= 1
        yield _Part(start, end)
        start = cut


def _last_gap(text: str, start: int, end: int) -> int | None:
    """The last place in this part of the text where a word ends."""
    if text[end].isspace():
        return end
    for place in range(end - 1, start, -1):
        if text[place].isspace():
            return place
        if _PAUSE.match(text[place]):
            return place + 1
    return None

"""Cuts Markdown into chunks for retrieval: at headings, then between paragraphs, then between sentences.

Every chunk is a part of the Markdown as it is, and only white space is left out between two chunks, so nothing is lost
or changed. Code and tables are cut only between lines, and a word is never cut: such a chunk may be longer. The work is
proportional to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple

CHUNK_SIZE: Final = 800
SMALLEST: Final = 100
LARGEST: Final = 1_000_000
# The possessive quantifiers keep the patterns linear: a line can have millions of the same character, and nothing else
# of the process runs during a match.
_FENCE: Final = re.compile(r"[ >]*+(?:(?:[-*+]|\d{1,9}+[.)]|:)[ ]++)?(`{3,}+|~{3,}+)[^`]*+")
_ROW: Final = re.compile(r"[ >]*+\|")
_ITEM: Final = re.compile(r"[ ]*+(?:[-*+][ ]|\d{1,9}+[.)][ ]|:[ ]|>|\[\^)")
_AFTER_SIGN: Final = "\"'\u201d\u2019)]*_"
"""What may stand between the sign that ends a sentence and the white space after it."""
_SENTENCE: Final = re.compile(rf"[.!?\u2026][{re.escape(_AFTER_SIGN)}]*+\s++|[\u3002\uff01\uff1f]\s*+")
_DEEPEST: Final = 6
_MANY_LINES: Final = 10_000
_PIECE: Final = 1 << 20
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


def chunks_of(text: str, size: int, *, markdown: bool = True) -> Iterator[Chunk | None]:
    """The chunks of a text, each at most `size` characters long where it can be cut. Plain text has no headings.

    None after a long part of the text without a chunk, so that no step takes long.
    """
    path: list[Heading] = []
    filling = _Filling(text, size)
    # Headings that stand directly above deeper ones stay with them, and their chunk has all of them in its path.
    above: list[_Block] = []
    for block in _blocks(text, markdown):
        if block is None:
            yield None
        elif block.heading is None:
            for each in (*above, block):
                yield from filling.add(each, tuple(path))
            above.clear()
        else:
            if not above or _level(above[-1]) >= block.heading.level:
                for each in above:
                    yield from filling.add(each, tuple(path))
                above.clear()
                yield from filling.rest(tuple(path))
            while path and path[-1].level >= block.heading.level:
                path.pop()
            path.append(block.heading)
            above.append(block)
    for each in above:
        yield from filling.add(each, tuple(path))
    yield from filling.rest(tuple(path))


def _level(block: _Block) -> int:
    return block.heading.level if block.heading else 0


def _blocks(text: str, markdown: bool) -> Iterator[_Block | None]:
    """The blocks of the text, without the empty lines between them. None after many lines."""
    sort: Sort | None = None
    start = end = headings = 0
    fence = ""
    for number, (line_start, line_end) in enumerate(_lines(text, 0, len(text)), 1):
        if not number % _MANY_LINES:
            yield None
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
        del line  # it may have megabytes, and this waits at each `yield`
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


def _lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where the lines of a part of the text start and end."""
    while start < stop:
        end = text.find("\n", start, stop)
        end = stop if end < 0 else end
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


class _Filling:
    """Fills chunks with the blocks of a section: as many parts in each as fit."""

    def __init__(self, text: str, size: int) -> None:
        self._text = text
        self._size = size
        self._first: _Part | None = None
        self._end = 0
        self._filled = False

    def add(self, block: _Block, path: tuple[Heading, ...]) -> Iterator[Chunk | None]:
        """The chunks that are full when this block follows. None after a long part of the block without one."""
        parts: Iterator[_Part | None]
        if block.end - block.start <= self._size:
            parts = iter((_Part(block.start, block.end),))
        else:
            parts = _parts(self._text, block, self._size)
            # A long block starts a chunk of its own, but not without the heading before it.
            if self._filled:
                yield from self.rest(path)
        for part in parts:
            if part is None:
                yield None
                continue
            if self._first is not None and part.end - self._first.start > self._size:
                yield from self.rest(path)
            if self._first is None:
                self._first = part
            self._end = part.end
            self._filled = self._filled or block.heading is None

    def rest(self, path: tuple[Heading, ...]) -> Iterator[Chunk]:
        """The chunk that is not full yet."""
        if self._first is not None:
            yield Chunk(self._first.start, self._end, path, self._first.context)
        self._first, self._filled = None, False


def _parts(text: str, block: _Block, size: int) -> Iterator[_Part | None]:
    if block.sort in ("code", "table"):
        yield from _rows(text, block, size)
        return
    for item in _items(text, block):
        if item is None:
            yield None
        elif item[1] - item[0] <= size:
            yield _Part(*item)
        else:
            yield from _sentences(text, *item, size)


def _rows(text: str, block: _Block, size: int) -> Iterator[_Part | None]:
    """The lines of code or of a table. Each but the first ones has a context of at most `size` characters."""
    heads, context = _head(text, block, size)
    for number, (start, end) in enumerate(_lines(text, block.start, block.end), 1):
        if not number % _MANY_LINES:
            yield None
        if end > start and not text[start:end].isspace():
            yield _Part(start, end, context if number > heads else "")


def _head(text: str, block: _Block, size: int) -> tuple[int, str]:
    """How many lines begin a block, and what the others need of them. None of these lines is empty."""
    lines = [text[start:end] for start, end in islice(_lines(text, block.start, block.end), 2)]
    heads = 1
    if block.sort == "table":
        rule = lines[1] if len(lines) > 1 else ""
        heads = 2 if "-" in rule and not rule.strip(" \t>:|-") else 0
    return heads, "\n".join(lines[:heads])[:size]


def _items(text: str, block: _Block) -> Iterator[tuple[int, int] | None]:
    """The entries of a list, the lines of a quotation; else the whole block. None after many lines."""
    begin = end = block.start
    for number, (start, stop) in enumerate(_lines(text, block.start, block.end), 1):
        if not number % _MANY_LINES:
            yield None
        if start > begin and _ITEM.match(text, start, stop):
            yield begin, end
            begin = start
        end = stop
    yield begin, end


def _sentences(text: str, start: int, end: int, size: int) -> Iterator[_Part | None]:
    for stop in _sentence_ends(text, start, end):
        if stop is None:
            yield None
        else:
            yield from _words(text, start, stop, size)
            start = stop
    yield from _words(text, start, end, size)


def _sentence_ends(text: str, start: int, end: int) -> Iterator[int | None]:
    """Where sentences end. None after a long part without an end.

    The text is searched in pieces, because nothing else of the process runs during a search.
    """
    while start < end:
        limit = min(start + _PIECE, end)
        found = _SENTENCE.search(text, start, limit)
        if limit < end and (found is None or found.end() == limit):  # the piece may end in the midst of an end
            last = found.start() if found else start + len(text[start:limit].rstrip(_AFTER_SIGN)) - 1
            found = _SENTENCE.match(text, max(last, start), end)
        start = found.end() if found else limit
        yield start if found else None


def _words(text: str, start: int, end: int, size: int) -> Iterator[_Part]:
    """A sentence; if it is too long, its words in groups."""
    stop = start + len(text[start:end].rstrip())
    while start < stop:
        start = _first(_NOT_SPACE, text, start, stop)
        if stop - start <= size:
            yield _Part(start, stop)
            return
        cut = _last_gap(text, start, start + size)
        if cut is None:
            cut = _first(_SPACE, text, start + size, stop)
        end = cut
        while text[end - 1].isspace():
            end -= 1
        yield _Part(start, end)
        start = cut


def _first(sign: re.Pattern[str], text: str, start: int, stop: int) -> int:
    """The first place with such a sign, else `stop`. In pieces, as in `_sentence_ends`."""
    while start < stop:
        limit = min(start + _PIECE, stop)
        if found := sign.search(text, start, limit):
            return found.start()
        start = limit
    return stop


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

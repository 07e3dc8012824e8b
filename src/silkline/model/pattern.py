"""Regular expressions of users for URLs, always matched in linear time (RE2).

Python's own engine can need hours for a short pattern and a short URL. RE2 has neither look-around nor back-references;
the error for such a pattern names its position. Patterns are limited in length, number and size, each and together: to
compile one character takes up to 15 µs, and to refuse a pattern that is too large up to 12 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

MAX_LENGTH: Final = 1000
MAX_PATTERNS: Final = 100
MAX_LENGTH_TOGETHER: Final = 20_000
# Steps of the compiled pattern. With the largest allowed pattern a URL of 8,000 characters takes at most 0.2 s.
MAX_SIZE: Final = 1000
MAX_SIZE_TOGETHER: Final = 5000
_MEMORY: Final = 1 << 20

_UNSUPPORTED: Final = (
    (("(?=", "(?!", "(?<=", "(?<!"), "look-around"),
    (("(?P=",), "a back-reference"),
    (("(?>",), "an atomic group"),
    (("(?(",), "a conditional group"),
    (("(?#",), "a comment"),
    (("*+", "++", "?+", "}+"), "a possessive quantifier"),
)


class BadPattern(ValueError):
    """The pattern is not supported; the message says why and where."""


class BadPatternAt(BadPattern):
    """The same for one of several patterns, with its place in the list."""

    def __init__(self, place: int, words: str) -> None:
        super().__init__(words)
        self.place = place


class UrlPattern:
    """One compiled pattern."""

    __slots__ = ("_search", "size")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise BadPattern(f"is longer than {MAX_LENGTH} characters")
        refuse_unsupported(text)
        compiled = compile_text(text)
        self.size: int = compiled.programsize
        if self.size > MAX_SIZE:
            raise BadPattern("is too large: it repeats too much")
        self._search = compiled.search

    def found_in(self, url: str) -> bool:
        return self._search(url.encode(errors="replace")) is not None


def compile_patterns(texts: Iterable[str]) -> list[UrlPattern]:
    """Compile several patterns, which together must not be too large. Stops at the first that is wrong or too much."""
    texts = list(texts)
    if len(texts) > MAX_PATTERNS:
        raise BadPattern(f"are more than {MAX_PATTERNS} patterns")
    for place, text in enumerate(texts):
        if len(text) > MAX_LENGTH:
            raise BadPatternAt(place, f"is longer than {MAX_LENGTH} characters")
    if sum(map(len, texts)) > MAX_LENGTH_TOGETHER:
        raise BadPattern(f"have more than {MAX_LENGTH_TOGETHER:,} characters together: use fewer or shorter patterns")
    patterns: list[UrlPattern] = []
    size = 0
    for place, text in enumerate(texts):
        try:
            patterns.append(UrlPattern(text))
        except BadPattern as error:
            raise BadPatternAt(place, str(error)) from error
        size += patterns[-1].size
        if size > MAX_SIZE_TOGETHER:
            raise BadPattern("are too large together: they repeat too much, use fewer or simpler patterns")
    return patterns


def compile_text(text: str, *, captures: bool = False) -> Any:
    """The compiled pattern of RE2. Without `captures` it has no groups, which makes it smaller."""
    import re2  # the import takes 20 ms, and most commands need no pattern

    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = _MEMORY
    try:
        return re2.compile(_as_re2(text), options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise BadPattern(f"is not a regular expression: {words}") from error


def refuse_unsupported(text: str) -> None:
    """Find a feature of Python's engine that RE2 lacks: its name and position."""
    for place, piece in _pieces(text):
        if re.fullmatch(r"\\[1-9]", piece):
            raise BadPattern(_not_supported("a back-reference", piece, place))
        for starts, name in _UNSUPPORTED:
            if start := next((start for start in starts if text.startswith(start, place)), ""):
                raise BadPattern(_not_supported(name, start, place))


def _not_supported(name: str, piece: str, place: int) -> str:
    return f"uses {name}, which is not supported: {piece} at character {place + 1}"


def _as_re2(text: str) -> str:
    """Translate the parts whose syntax differs between Python and RE2."""
    written = []
    for place, piece in _pieces(text):
        if piece == r"\Z":
            piece = r"\z"
        elif piece == "{" and text[place : place + 2] == "{,":
            piece = "{0"
        written.append(piece)
    return "".join(written)


def _pieces(text: str) -> Iterable[tuple[int, str]]:
    """Each character with its position; escapes and classes in brackets as one piece."""
    place = 0
    while place < len(text):
        end = place + 1
        if text[place] == "\\":
            end = place + 2
        elif text[place] == "[":
            end = _end_of_class(text, place)
        yield place, text[place:end]
        place = end


def _end_of_class(text: str, start: int) -> int:
    place = start + 1
    if text.startswith("^", place):
        place += 1
    if text.startswith("]", place):
        place += 1
    while place < len(text) and text[place] != "]":
        place += 2 if text[place] == "\\" else 1
    return place + 1

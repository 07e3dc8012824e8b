"""Protects the HTML parser, whose memory grows with the number of elements, not of bytes.

There are three attacks: millions of short tags, formatting tags that are never closed, and many `<html>` or `<body>`
tags. The standard says that open formatting is opened again in every following paragraph. So `<p>`, 500 times `<b
id=n>`, then `</p><p>x` without end is a bomb: 75 KB of it take 400 MB. The standard also says that the first `<html>`
gets the attributes of all others, and the parser copies all its attributes each time: 20,000 times `<html a1=1>`,
`<html a2=1>` and so on (260 KB) take more than 330 MB, and `<body>` twice with 40,000 attributes each takes 4 seconds.

Bodies are searched as bytes, so their tags must be in ASCII (html.py makes sure of that).
"""

import re
from collections import Counter
from itertools import islice
from typing import Final

try:
    from silkline.parse.tag_counts import count_tags
except ImportError:  # not compiled
    from silkline.parse.tag_search import count_tags
from silkline.parse.tag_search import OPENED

# Each tag takes about 190 bytes of memory, 400 with text between the tags.
_MAX_TAGS: Final = 250_000
# Elements that the parser may create by opening formatting again.
_MAX_REOPENED: Final = 1_000_000
# Both elements exist once. Normal pages have them at most twice, if a server joins two pages.
_MAX_ROOTS: Final = 16
_ROOT: Final = re.compile(rb"<([hH][tT][mM][lL]|[bB][oO][dD][yY])(?=[\s/])")
# The time to add attributes grows with the product of new and existing ones: 0.1 s for this many bytes.
_MAX_ROOT_BYTES: Final = 16 << 10
# Attributes as in the standard: a `>` within quotes does not end a tag.
_ATTRIBUTES: Final = re.compile(
    rb"""(?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?)?)*"""
)
_NAMES: Final = rb"(?:b|i|u|s|em|tt|big|code|font|small|strike|strong)"
_FORMATTING: Final = re.compile(rb"<(/?)(?=" + _NAMES + rb"[\s/>])", re.IGNORECASE)
# The same, but nothing is found if a quote does not end. Only the white space of the standard.
_WHOLE_ATTRIBUTES: Final = (
    rb"(?:[\t\n\f\r /]++|[^\t\n\f\r />][^\t\n\f\r />=]*+"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])[^\t\n\f\r >]*+)|(?![\t\n\f\r ]*+=)))*"
)
# A formatting tag, its name, and its end tag if only text, links and `<span>` are between them: then it is closed for
# certain.
_START: Final = re.compile(
    rb"(<(" + _NAMES + rb")(?=[\s/>])" + _WHOLE_ATTRIBUTES + rb">)"
    rb"((?:[^<]*+</?(?:span|a)(?=[\s/>])" + _WHOLE_ATTRIBUTES + rb">)*[^<]*+</\2(?=[\s/>]))?",
    re.IGNORECASE,
)
_LONGEST_TAG: Final = 400
"""Of a tag that is read, with its text and its end tag."""
_IDENTICAL: Final = 3
"""The standard opens at most this many identical elements again (its "Noah's Ark clause")."""


def guarded(body: bytes, longest: int) -> tuple[bytes, bytes]:
    """The body itself (the same object), or its beginning if it is longer than `longest` or has too many tags; and the
    same, defused.
    """
    kept = body if len(body) <= longest else body[:longest]
    counts = count_tags(kept)
    while counts[-1] > _MAX_TAGS:
        kept = kept[: len(kept) * 3 // 4]
        counts = count_tags(kept)
    return kept, _defused(kept, *counts)


def defused(body: bytes) -> bytes:
    """The body itself (the same object), or a copy in which formatting such as bold and italics has other names."""
    return _defused(body, *count_tags(body))


def _defused(body: bytes, opened: int, repeats_root: bool, tags: int) -> bytes:
    if repeats_root:
        body = _without_roots(body)
    if opened * tags <= _MAX_REOPENED or not _can_reopen(body, _MAX_REOPENED // tags):
        return body
    return _FORMATTING.sub(rb"<\1x-", body)


def _without_roots(body: bytes) -> bytes:
    """The body. If it has too many `<html>` or `<body>` tags or attributes, only the first tag of each is kept."""
    seen = list(islice(_ROOT.finditer(body), _MAX_ROOTS + 1))
    if len(seen) < 2 or (len(seen) <= _MAX_ROOTS and _repeated_bytes(body, seen) <= _MAX_ROOT_BYTES):
        return body
    known: set[bytes] = set()

    def once(found: re.Match[bytes]) -> bytes:
        name = found[1].lower()
        if name not in known:
            known.add(name)
            return found[0]
        return b"<!"  # starts a comment up to the next `>`

    return _ROOT.sub(once, body)


def _repeated_bytes(body: bytes, seen: list[re.Match[bytes]]) -> int:
    """The length of all attributes of the elements that occur more than once."""
    times = Counter(found[1].lower() for found in seen)
    total = 0
    for found in seen:
        if times[found[1].lower()] > 1 and (
            attributes := _ATTRIBUTES.match(body, found.end(), found.end() + _MAX_ROOT_BYTES + 1)
        ):
            total += len(attributes[0])
    return total


def _can_reopen(body: bytes, most: int) -> bool:
    """Whether one tag may open more than `most` formatting elements again.

    End tags elsewhere do not count: in comments, attributes, cells, templates and menus they close nothing.
    """
    left_open: Counter[bytes] = Counter()
    for found in OPENED.finditer(body):
        start = _START.match(body, found.start(), found.start() + _LONGEST_TAG)
        if start is not None and start[3]:
            continue
        tag = start[1] if start is not None else b"%d" % found.start()  # one that is too long differs from all others
        left_open[tag] += 1
        if left_open[tag] <= _IDENTICAL:
            most -= 1
        if most < 0:
            return True
    return False

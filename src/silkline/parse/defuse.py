"""The guard before the HTML parser, whose memory grows with the number of elements and not of bytes.

Three ways to abuse that: millions of short tags, formatting tags that are never closed, and the tags `<html>` and
`<body>` many times over. The standard asks to open formatting again in every paragraph that follows, which makes a bomb
of `<p>`, 500 times `<b id=n>`, then `</p><p>x` without end: 75 KB of it take 400 MB. It also asks to give the one
`<html>` the attributes of all others, and the parser copies all that it has each time: 20,000 times `<html a1=1>`,
`<html a2=1>` and so on (260 KB) take more than 330 MB.
"""

import re
from collections import Counter
from itertools import islice
from typing import Final

# About 190 bytes of memory each, 400 with a text between them.
_MAX_TAGS: Final = 250_000
# Elements that the parser may have to make, times eight: the shortest paragraph that reopens them has eight bytes.
_LIMIT: Final = 8_000_000
# The formatting elements without `a` and `nobr`, of which only one can be open. Both cases are spelled out: that is
# twice as fast as IGNORECASE (16 µs for 43 KB).
_OPENED: Final = re.compile(
    rb"<[bBiIuUsSeEtTcCfF](?:[mMtT]|[iI][gG]|[oO][dD][eE]|[oO][nN][tT]|[mM][aA][lL]{2}|[tT][rR][iIoO][kKnN][eEgG])?[\s/>]"
)
# Both elements exist once; honest pages have them twice at most, where a server glues two pages together.
_MAX_ROOTS: Final = 16
_ROOT: Final = re.compile(rb"<(?:[hH][tT][mM][lL]|[bB][oO][dD][yY])[\s/][^>]*")
_NAMES: Final = rb"(?:b|i|u|s|em|tt|big|code|font|small|strike|strong)"
_TAG: Final = re.compile(rb"<(/?)(" + _NAMES + rb")(?=[\s/>])", re.IGNORECASE)
_WHOLE_TAG: Final = re.compile(rb"</?" + _NAMES + rb"(?:[\s/][^<>]*+)?>", re.IGNORECASE)


def shortened(body: bytes, longest: int) -> bytes:
    """The body itself (the same object), or its beginning if it is longer than `longest` or has too many tags."""
    size = min(len(body), longest)
    while size > 3 * _MAX_TAGS and body.count(b"<", 0, size) > _MAX_TAGS:
        size = size * 3 // 4
    return body if size == len(body) else body[:size]


def defused(body: bytes) -> bytes:
    """The body itself (the same object), or one without the tags that could be a bomb: bold, italics and the like."""
    body = _without_roots(body)
    size = len(body)
    if len(_OPENED.findall(body)) * size <= _LIMIT or _most_open(body) * size <= _LIMIT:
        return body
    return _WHOLE_TAG.sub(b"", body)


def _without_roots(body: bytes) -> bytes:
    """The body, without the attributes of `<html>` and `<body>` after the first few of them."""
    seen = [found.span() for found in islice(_ROOT.finditer(body), _MAX_ROOTS + 1)]
    if len(seen) <= _MAX_ROOTS:
        return body
    start = seen[-1][0]
    return body[:start] + _ROOT.sub(b"<p", body[start:])


def _most_open(body: bytes) -> int:
    """How many formatting elements are open at once, at most; an end tag closes only its own kind."""
    opened: Counter[bytes] = Counter()
    now = most = 0
    for found in _TAG.finditer(body):
        name = found[2].lower()
        if not found[1]:
            opened[name] += 1
            now += 1
            most = max(most, now)
        elif opened[name]:
            opened[name] -= 1
            now -= 1
    return most

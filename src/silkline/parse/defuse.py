"""The guard before the HTML parser, whose memory grows with the number of elements and not of bytes.

Two ways to abuse that: millions of short tags, and formatting tags that are never closed. The standard asks to open
those again in every paragraph that follows, which makes a bomb of `<p>`, 500 times `<b id=n>`, then `</p><p>x` without
end: 75 KB of it take 400 MB.
"""

import re
from collections import Counter
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
_NAMES: Final = rb"(?:b|i|u|s|em|tt|big|code|font|small|strike|strong)"
_TAG: Final = re.compile(rb"<(/?)(" + _NAMES + rb")(?=[\s/>])", re.IGNORECASE)
_WHOLE_TAG: Final = re.compile(rb"</?" + _NAMES + rb"(?:[\s/][^>]*)?>", re.IGNORECASE)


def shortened(body: bytes, longest: int) -> bytes:
    """The body itself (the same object), or its beginning if it is longer than `longest` or has too many tags."""
    size = min(len(body), longest)
    while size > 3 * _MAX_TAGS and body.count(b"<", 0, size) > _MAX_TAGS:
        size = size * 3 // 4
    return body if size == len(body) else body[:size]


def defused(body: bytes) -> bytes:
    """The body itself (the same object), or one without bold, italics and the like if those tags could be a bomb."""
    size = len(body)
    if len(_OPENED.findall(body)) * size <= _LIMIT or _most_open(body) * size <= _LIMIT:
        return body
    return _WHOLE_TAG.sub(b"", body)


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

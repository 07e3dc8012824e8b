"""Whether a page as it came from the server is only a frame that its scripts are to fill. Pure.

Most pages are told by their text alone, of which no more than some hundred words are looked at (5 µs); the source is
searched only where there is little of it.
"""

import re
from itertools import islice
from typing import Final

ENOUGH_WORDS: Final = 250
"""With so many there is something to read, whatever the scripts add."""
FEW_WORDS: Final = 100
HARDLY_ANY: Final = 25
_SEARCHED: Final = 200_000
_NOSCRIPTS: Final = 8

# No pattern here ever goes back over what it has read (`*+`), so that no page takes longer than its length.
_SCRIPT: Final = re.compile(rb"<script\b(?![^<>]*?\btype\s*+=\s*+[\"']?application/(?:ld\+)?json)", re.I)
# An element with an id (or an element of the page's own) and nothing in it is where an application goes.
_NOTHING: Final = rb"\s*+(?:(?:loading|&nbsp;|\.|\xe2\x80\xa6)\s*+){0,5}+(?:<!--[^<>]*+-->\s*+)?+"
_EMPTY_ROOT: Final = re.compile(
    rb"<(div|main|section|article)\b(?=[^<>]*?\bid\s*+=)[^<>]*+>" + _NOTHING + rb"</\1>"
    rb"|<([a-z][a-z0-9]*+-[a-z0-9-]*+)\b[^<>]*+>" + _NOTHING + rb"</\2>",
    re.I,
)
_KNOWN_ROOT: Final = re.compile(
    rb"\bid\s*+=\s*+[\"']?(?:root|app|__next|__nuxt|___gatsby|svelte|react-root|app-root|ember-app)[\"'\s>]"
    rb"|<app-root\b|\bng-app\b|\bdata-reactroot\b",
    re.I,
)
_NOSCRIPT: Final = re.compile(rb"<noscript\b[^<>]*+>", re.I)
_ASKS_FOR_SCRIPTS: Final = re.compile(rb"java\s?script|enable scripts", re.I)


def needs_scripts(text: str, source: bytes) -> bool:
    """`text` is what can be read on the page without its scripts and styles, `source` its HTML."""
    words = len(text.split(None, ENOUGH_WORDS))
    if words >= ENOUGH_WORDS:
        return False
    head = source[:_SEARCHED]
    if _SCRIPT.search(head) is None:
        return False
    if words < HARDLY_ANY or _EMPTY_ROOT.search(head) is not None or _asks_for_scripts(head):
        return True
    return words < FEW_WORDS and _KNOWN_ROOT.search(head) is not None


def _asks_for_scripts(source: bytes) -> bool:
    for found in islice(_NOSCRIPT.finditer(source), _NOSCRIPTS):
        inside = source[found.end() : found.end() + 2_000].partition(b"</noscript")[0]
        if _ASKS_FOR_SCRIPTS.search(inside) is not None:
            return True
    return False

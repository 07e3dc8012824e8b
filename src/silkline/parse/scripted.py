"""Detects pages that are nearly empty until their scripts have run. Pure.

For most pages the text is enough, and only its first few hundred words are counted (5 µs). The source is searched only
if there is little text.
"""

import re
from itertools import islice
from typing import Final

ENOUGH_WORDS: Final = 250
"""A page with this many words has content, even without its scripts."""
FEW_WORDS: Final = 100
HARDLY_ANY: Final = 25
_SEARCHED: Final = 200_000
_NOSCRIPTS: Final = 8

# The patterns do not backtrack (`*+`), so that the time is proportional to the length of the page.
_SCRIPT: Final = re.compile(rb"<script\b(?![^<>]*?\btype\s*+=\s*+[\"']?application/(?:ld\+)?json)", re.I)
# An empty element with an id, or an empty custom element, is where an application puts its content.
_NOTHING: Final = rb"\s*+(?:(?:loading|&nbsp;|\.|\xe2\x80\xa6)\s*+){0,5}(?:<!--[^<>]*+-->\s*+)?"
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
    """Whether a page needs its scripts. `text` is its text without scripts and styles, `source` its HTML."""
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

"""Removes quotations of what the page itself says, as in a thread where each answer quotes the post before it.

A quotation of another page stays, and so does one of a post that is not on this page.
"""

import re
from collections.abc import Iterator
from typing import Final

from turbohtml import Element, NodeFilter, TreeWalker

_WORD: Final = re.compile(r"\w+")
_LEAST: Final = 8
"""Words: a shorter quotation may be more than a copy, and takes little place."""
_WHO_SAID_IT: Final = 8
_NEW: Final = 0.2
_MOST_WORDS: Final = 200_000


def drop_quotations(root: Element) -> None:
    """Removes each quotation whose words, without a few that say whose they are, are in the page outside of it."""
    quotations: list[Element] = []
    inside: set[Element] = set()
    for element in root.find_all("blockquote"):  # in document order: an outer one comes before those in it
        if element not in inside:
            quotations.append(element)
            inside.add(element)
            inside.update(element.iter_elements())
    if not quotations:
        return
    said = set(_triples(_words_outside(root, inside)))
    for quotation in quotations:
        words = _WORD.findall(" ".join(quotation.stripped_strings).lower())[:_MOST_WORDS]
        known = bytearray(len(words))
        for at, triple in enumerate(_triples(words)):
            if triple in said:
                known[at : at + 3] = b"\1\1\1"
        found = sum(known)
        new = len(words) - found
        if found >= max(_LEAST, new) and new <= max(_WHO_SAID_IT, _NEW * len(words)):
            quotation.extract()
        elif len(said) < _MOST_WORDS:
            said.update(_triples(words))


def _triples(words: list[str]) -> Iterator[tuple[str, str, str]]:
    return zip(words, words[1:], words[2:], strict=False)


def _words_outside(root: Element, inside: set[Element]) -> list[str]:
    texts = TreeWalker(root, NodeFilter.SHOW_TEXT)
    found: list[str] = []
    while (text := texts.next_node()) is not None:
        if text.parent not in inside:
            found.append(text.data)  # type: ignore[attr-defined] # a Text
    return _WORD.findall(" ".join(found).lower())[:_MOST_WORDS]

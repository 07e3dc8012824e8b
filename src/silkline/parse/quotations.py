"""Removes quotations of what the page itself says, as in a thread where each answer quotes the post before it.

A quotation of another page stays, and so does one of a post that is not on this page.
"""

from collections.abc import Iterator
from typing import Final

from turbohtml import Element

from silkline.parse.main_content import Choice

_LEAST: Final = 8
"""Words: a shorter quotation may be more than a copy, and takes little place."""
_WHO_SAID_IT: Final = 8
_NEW: Final = 0.2
_MOST_WORDS: Final = 200_000
"""Of all quotations together."""


def drop_quotations(choice: Choice) -> None:
    """Removes each quotation whose words, without a few that say whose they are, are in the page outside of it.

    The rest of the page must have been removed before.
    """
    quotations = _quotations(choice)
    if not quotations:
        return
    texts = [quotation.text for quotation in quotations]
    quoted, left = [], _MOST_WORDS
    for text in texts:
        words = _words(text, left + 1)
        # One with more words than are left stays: judged by its first words, it could take new ones with it.
        quoted.append(words if len(words) <= left else [])
        left -= len(quoted[-1])
    asked = {triple for words in quoted for triple in _triples(words)}
    # Only these are looked for, so the triples of the rest of the page need not be kept.
    said = asked.intersection(_triples(_words(_outside(choice.outline.body.text, texts))))
    for quotation, words in zip(quotations, quoted, strict=True):
        known = bytearray(len(words))
        for at, triple in enumerate(_triples(words)):
            if triple in said:
                known[at : at + 3] = b"\1\1\1"
        found = sum(known)
        new = len(words) - found
        if found >= max(_LEAST, new) and new <= max(_WHO_SAID_IT, _NEW * len(words)):
            quotation.extract()
        else:
            said.update(_triples(words))


def _quotations(choice: Choice) -> list[Element]:
    """The outermost quotations that hold something of the choice, in document order."""
    groups = choice.outline.groups
    if "blockquote" not in [group.tag for group in groups]:
        return []
    around = [-1] * len(groups)
    for group in groups:
        up = group.up
        above = around[up.index] if up is not None else -1
        around[group.index] = group.index if above < 0 and group.tag == "blockquote" else above
    held = {around[index] for index in choice.kept if around[index] >= 0}
    found = {element for index in held for element in groups[index].elements}
    outermost: list[Element] = []
    inside: set[Element] = set()
    for element in choice.outline.body.find_all("blockquote"):
        # On a page with very many groups, nested quotations may be in one group.
        if element in found and element not in inside:
            outermost.append(element)
            inside.update(element.find_all("blockquote"))
    return outermost


def _outside(text: str, quotations: list[str]) -> str:
    """The text without the quotations, which are in it in this order."""
    found, end = [], 0
    for quotation in quotations:
        start = max(text.find(quotation, end), end)
        found.append(text[end:start])
        end = start + len(quotation)
    return " ".join([*found, text[end:]])


def _words(text: str, most: int = _MOST_WORDS) -> list[str]:
    return text.lower().split(maxsplit=most)[:most]


def _triples(words: list[str]) -> Iterator[tuple[str, str, str]]:
    return zip(words, words[1:], words[2:], strict=False)

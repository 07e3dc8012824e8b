"""Removes quotations of what the page itself says, as in a thread where each answer quotes the post before it.

A quotation of another page stays, and so does one of a post that is not on this page.
"""

from collections.abc import Iterator
from typing import Final

from turbohtml import Element, NodeFilter, TreeWalker

from silkline.parse.main_content import Choice

_LEAST: Final = 8
"""Words: a shorter quotation may be more than a copy, and takes little place."""
_WHO_SAID_IT: Final = 8
_NEW: Final = 0.2
_MOST_WORDS: Final = 200_000


def drop_quotations(choice: Choice) -> None:
    """Removes each quotation whose words, without a few that say whose they are, are in the page outside of it.

    The rest of the page must have been removed before.
    """
    quotations = _quotations(choice)
    if not quotations:
        return
    inside: set[Element] = set(quotations)
    for quotation in quotations:
        inside.update(quotation.iter_elements())
    said = set(_triples(_words_outside(choice.outline.body, inside)))
    for quotation in quotations:
        words = " ".join(quotation.stripped_strings).lower().split()[:_MOST_WORDS]
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


def _quotations(choice: Choice) -> list[Element]:
    """The outermost quotations that hold something of the choice."""
    groups = choice.outline.groups
    if "blockquote" not in [group.tag for group in groups]:
        return []
    around = [-1] * len(groups)
    for group in groups:
        up = group.up
        above = around[up.index] if up is not None else -1
        around[group.index] = group.index if above < 0 and group.tag == "blockquote" else above
    held = sorted({around[index] for index in choice.kept if around[index] >= 0})
    return [element for index in held for element in groups[index].elements]


def _triples(words: list[str]) -> Iterator[tuple[str, str, str]]:
    return zip(words, words[1:], words[2:], strict=False)


def _words_outside(root: Element, inside: set[Element]) -> list[str]:
    texts = TreeWalker(root, NodeFilter.SHOW_TEXT)
    found: list[str] = []
    while (text := texts.next_node()) is not None:
        if text.parent not in inside:
            found.append(text.data)  # type: ignore[attr-defined] # a Text
    return " ".join(found).lower().split()[:_MOST_WORDS]

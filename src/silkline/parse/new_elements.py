"""Makes elements that are put into a document, each with a hash of its own.

turbohtml makes the hash of an element from the address at which it was created, and `Element(...)` creates it at an
address that is free again as soon as the element is in a document. So elements that are made one after the other have
the same hash, and a dictionary with thousands of them takes quadratic time.
"""

from typing import Final

from turbohtml import Document, Element, parse

_FIRST: Final = 8
_MOST: Final = 1_024


class NewElements:
    """Elements without content, all with the same tag and attributes. `html` is one of them, such as `<p></p>`."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._number = _FIRST
        self._ready: list[Element] = []
        self._sources: list[Document] = []
        """Where the elements were created: as long as these documents exist, their addresses are not used again."""

    def next(self) -> Element:
        if not self._ready:
            source = parse("<!doctype html><body>" + self._html * self._number, positions=False)
            body = source.find("body")
            self._ready = [each for each in body.children if isinstance(each, Element)] if body is not None else []
            self._sources.append(source)
            self._number = min(2 * self._number, _MOST)
        return self._ready.pop()

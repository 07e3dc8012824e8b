"""Whether the XPaths of a job may take too long on a page. No call of an XPath can be interrupted.

Most XPaths go down through a page once: their time is linear. Others look at siblings, parents, ancestors or further
elements for each element that they find. Their time depends on the page: how many nodes it has, how many of them are
siblings, and how deep they are. Ordinary pages have few siblings and are not deep, so only odd ones are too much.

For all other XPaths (`xpath_shape.py`), every page is too much.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from turbohtml import Document, XPath

from silkline.parse.xpath_shape import XPathShape, shape_of

MOST_STEPS: Final = 1_000_000_000
"""About 1.5 s. `count(preceding-sibling::p)` for each of `n` siblings takes `n` to the power of 3 such steps."""
_LETTERS: Final = 4
"""How many letters of the HTML, which contain the attributes too, are read in one step."""
_NODES: Final = XPath("count(//node())")
_LEVELS: Final = (8, 16, 32, 64, 128, 256)
_MOST_LEVELS: Final = 512
"""The parser makes no more."""
_ORDINARY_LEVELS: Final = 64
"""Below this, the levels do not count for bringing the found nodes into their order."""


class XPathCost:
    """Knows the XPaths of a job. It is false if their time is linear."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._shapes = {shape for path in paths if not (shape := shape_of(path)).linear}

    def __bool__(self) -> bool:
        return bool(self._shapes)

    def is_too_much(self, document: Document) -> bool:
        """Whether some XPath may take more than the most steps. Takes linear time itself."""
        if not all(shape.bounded for shape in self._shapes):
            return True
        counted = _NODES(document)
        nodes = max(1.0, counted) if isinstance(counted, float) else 1.0
        letters = len(document.html) / _LETTERS
        levels = next((most for most in _LEVELS if not _finds("/*" * (most + 1), document)), _MOST_LEVELS)
        return any(_is_too_much(shape, nodes, letters, levels, document) for shape in self._shapes)


def _is_too_much(shape: XPathShape, nodes: float, letters: float, levels: int, document: Document) -> bool:
    """Whether the page is too large or too deep for the XPath, or has too many siblings for one of this size."""
    walked = levels**shape.walks
    # Each node that is found is compared and brought into its order; then its text or its attributes may be read.
    finding = nodes * walked * max(1, levels // _ORDINARY_LEVELS)
    reading = letters * walked * levels
    if shape.ancestors:
        finding *= levels**2
    if shape.their_attributes:
        reading *= nodes / levels
    if max(finding, reading) > MOST_STEPS:
        return True
    if not shape.looks:
        return False
    most = min((MOST_STEPS / finding) ** (1 / (shape.looks + 1)), (MOST_STEPS / reading) ** (1 / shape.looks))
    return _finds(f"//{shape.kind}[{int(most) + 1}]", document)


def _finds(path: str, document: Document) -> bool:
    return bool(_compiled(path)(document))


@lru_cache(maxsize=1024)
def _compiled(path: str) -> XPath:
    return XPath(path)

"""Whether the XPaths of a job may take too long on a page. No call of an XPath can be interrupted.

Most XPaths go down through a page once: their time is linear. Others look at siblings, parents or further elements for
each element that they find. Their time depends on the page: how many nodes it has, how many of them are siblings, and
how deep they are. Ordinary pages have few siblings and are not deep, so only odd ones are too much.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from turbohtml import Document, XPath

MOST_STEPS: Final = 1_000_000_000
"""About 1.5 s. `count(preceding-sibling::p)` for each of `n` siblings takes `n` to the power of 3 such steps."""
_WITHOUT_TEXTS: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_SIBLINGS: Final = re.compile(r"\.\.|parent|following|preceding")
_DOWN: Final = re.compile(r"//|descendant|ancestor")
# Axes over the whole document, and a path from its root for each element: after a name, `/` only goes on.
_WHOLE: Final = re.compile(r"(?:following|preceding)\s*::")
_FROM_THE_ROOT: Final = re.compile(r"(?<![\w)*.\]/])/")
_NO_ELEMENT: Final = re.compile(r"::\s*(?:text|node|comment|processing)|\.\.")
_NODES: Final = XPath("count(//node())")
_MOST_LEVELS: Final = 500


class XPathCost:
    """Knows the XPaths of a job. It is false if their time is linear."""

    def __init__(self, paths: Iterable[str]) -> None:
        bare = [_WITHOUT_TEXTS.sub("''", path) for path in paths]
        predicates = [path.partition("[")[2] for path in bare]
        # In predicates, each look may be one for each sibling that another one finds.
        looks = max((len(_SIBLINGS.findall(predicate)) for predicate in predicates), default=0)
        self._looks = max(looks, 1) if any(map(_SIBLINGS.search, bare)) else 0
        self._kind = "node()" if any(map(_NO_ELEMENT.search, bare)) else "*"
        self._power = 3 if any(map(_WHOLE.search, bare)) else 2 if any(map(_FROM_THE_ROOT.search, predicates)) else 1
        self._walks = max((len(_DOWN.findall(path)) for path in bare), default=0)

    def __bool__(self) -> bool:
        return self._looks > 0 or self._power > 1 or self._walks > 1

    def is_too_much(self, document: Document) -> bool:
        """Whether some XPath may take more than the most steps. Takes linear time itself."""
        counted = _NODES(document)
        nodes = max(1.0, counted) if isinstance(counted, float) else 1.0
        if self._power > 1 and nodes**self._power > MOST_STEPS:
            return True
        room = MOST_STEPS / nodes
        if self._looks and _finds(f"//{self._kind}[{int(room ** (1 / (self._looks + 1))) + 1}]", document):
            return True
        levels = int(room ** (1 / (self._walks - 1))) + 1 if self._walks > 1 else _MOST_LEVELS
        return levels < _MOST_LEVELS and _finds("/*" * levels, document)


def _finds(path: str, document: Document) -> bool:
    return bool(_compiled(path)(document))


@lru_cache(maxsize=1024)
def _compiled(path: str) -> XPath:
    return XPath(path)

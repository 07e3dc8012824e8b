"""The page model: how probable it is that a group of the outline is content.

`page_model.json` is data: a weight for each word in classes, ids and roles, and small decision trees. The first trees
judge each group alone, by the numbers of `block_features.py`; the second ones also know what the first say about the
other groups (`neighbours.py`). `benchmarks/train_page_model.py` makes it from pages whose content is known.
"""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import resources
from itertools import repeat
from math import exp
from typing import Any, Final

from turbohtml import Element

from silkline.parse.block_features import LONGEST_NAMES, NAMES, PAGE_NAMES, Rows, signs, words
from silkline.parse.neighbours import NEAR_NAMES, neighbours
from silkline.parse.outline import Group

_DATA: Final[dict[str, Any]] = json.loads(resources.files(__package__).joinpath("page_model.json").read_bytes())
_TOKENS: Final[dict[str, float]] = _DATA["tokens"]
_OF_TAGS: Final = {token[1:-1]: weight for token, weight in _TOKENS.items() if token[0] == "<"}
TAGS: Final[dict[str, float]] = _DATA["leaf"]
_SURELY_NOT, _SURELY = 0.08, 0.95
"""A group whose first probability is outside of these gets no second look: it would change next to nothing."""
_SMALL: Final = 0.001
"""Nor does a group with a smaller share of the text of the page: a quarter of all groups."""


def weigh(tag: str, names: str, element: Element) -> float:
    """The weight of the names of an element."""
    weight = _weight_of_classes(names[:LONGEST_NAMES]) if names else 0.0
    if len(element.attrs) <= bool(names):  # most elements have no other attributes
        return weight + _OF_TAGS.get(tag, 0.0)
    for sign in signs(tag, element):
        if sign in _TOKENS:
            weight += _TOKENS[sign]
    return weight


@lru_cache(maxsize=16384)
def _weight_of_classes(names: str) -> float:
    """Cached, because elements share classes, and the pages of a site share most of them."""
    return sum(map(_TOKENS.get, words(names), repeat(0.0)))


def _as_function(trees: Iterable[Any], arguments: list[str]) -> Callable[..., float]:
    """The probability from all trees as one Python function: a loop over their nodes takes four times as long."""
    total = " + ".join(_as_source(tree, arguments) for tree in trees)
    source = f"lambda {', '.join(arguments)}: 1 / (1 + exp(-({total})))"
    function: Callable[..., float] = eval(source, {"__builtins__": {}, "exp": exp})  # noqa: S307 - our own data
    return function


def _as_source(tree: Any, arguments: list[str]) -> str:
    if not isinstance(tree, list):
        return repr(float(tree))
    at, limit, left, right = tree
    return f"({_as_source(left, arguments)} if {arguments[at]} <= {float(limit)!r} else {_as_source(right, arguments)})"


_first: Final = _as_function(_DATA["first"], [*NAMES, *PAGE_NAMES])
_second: Final = _as_function(_DATA["second"], [*NAMES, *PAGE_NAMES, *NEAR_NAMES])


def likelihoods(groups: list[Group], described: Rows) -> list[float]:
    """How likely the text of each leaf is content."""
    leaves, rows, page = described
    alone = [_first(*row, *page) for row in rows]
    near = neighbours(groups, leaves, alone)
    small = _SMALL * groups[0].text
    return [
        _second(*row, *page, *around) if _SURELY_NOT < first < _SURELY and leaf.own >= small else first
        for leaf, row, around, first in zip(leaves, rows, near, alone, strict=True)
    ]

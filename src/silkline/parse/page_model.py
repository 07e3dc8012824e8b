"""The page model: how probable it is that a group of the outline is content.

`page_model.json` is data: a weight for each word in classes, ids and roles, and small decision trees. The first trees
judge each group alone, by the numbers of `block_features.py`; the second ones also know what the first say about the
other groups (`neighbours.py`). `benchmarks/train_page_model.py` makes it from pages whose content is known.
"""

import json
from importlib import resources
from typing import Any, Final

from turbohtml import Element

from silkline.parse.block_features import LONGEST_NAMES, NAMES, PAGE_NAMES, Rows, signs
from silkline.parse.decision_trees import DecisionTrees
from silkline.parse.letters import words
from silkline.parse.neighbours import NEAR_NAMES, neighbours
from silkline.parse.outline import Group

_DATA: Final[dict[str, Any]] = json.loads(resources.files(__package__).joinpath("page_model.json").read_bytes())
_TOKENS: Final[dict[str, float]] = _DATA["tokens"]
_OF_TAGS: Final = {token[1:-1]: weight for token, weight in _TOKENS.items() if token[0] == "<"}
TAGS: Final[dict[str, float]] = _DATA["leaf"]
_CLASSES: Final[dict[str, float]] = {}
_MAX_CLASSES: Final = 16_384
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


def _weight_of_classes(names: str) -> float:
    """Cached, because elements share classes, and the pages of a site share most of them."""
    known = _CLASSES.get(names)
    if known is not None:
        return known
    weight = 0.0
    for word in words(names):
        of_word = _TOKENS.get(word)
        if of_word is not None:
            weight += of_word
    if len(_CLASSES) >= _MAX_CLASSES:
        _CLASSES.clear()
    _CLASSES[names] = weight
    return weight


_OWN: Final = len(NAMES) + len(PAGE_NAMES)
_first: Final = DecisionTrees(_DATA["first"], _OWN)
_second: Final = DecisionTrees(_DATA["second"], _OWN + len(NEAR_NAMES))


def likelihoods(groups: list[Group], described: Rows) -> list[float]:
    """How likely the text of each leaf is content."""
    leaves, rows, page = described
    alone = [_first.probability(row, page, ()) for row in rows]
    body = groups[0]
    small = _SMALL * body.text
    unsure = [_SURELY_NOT < first < _SURELY and leaf.own >= small for leaf, first in zip(leaves, alone, strict=True)]
    near = neighbours(groups, leaves, alone, unsure)
    return [
        _second.probability(row, page, around) if around else first
        for row, around, first in zip(rows, near, alone, strict=True)
    ]

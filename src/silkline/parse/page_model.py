"""The page model: how probable it is that a group of the outline is content.

`page_model.json` is data: a weight for each word in classes, ids and roles, and small decision trees over the numbers
of `block_features.py`. `benchmarks/train_page_model.py` makes it from pages whose content is known.
"""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from turbohtml import Element

from silkline.parse.block_features import LONGEST_NAMES, NAMES, PAGE_NAMES, signs, words

_DATA: Final[dict[str, Any]] = json.loads(resources.files(__package__).joinpath("page_model.json").read_bytes())
_TOKENS: Final[dict[str, float]] = _DATA["tokens"]
LEAF_WEIGHTS: Final[dict[str, float]] = _DATA["leaf"]


def weigh(tag: str, names: str, element: Element) -> float:
    """The weight of the names of an element."""
    weight = 0.0
    for name in names[:LONGEST_NAMES].split():
        weight += _weight_of_class(name)
    for sign in signs(tag, element):
        if sign in _TOKENS:
            weight += _TOKENS[sign]
    return weight


@lru_cache(maxsize=32768)
def _weight_of_class(name: str) -> float:
    """Cached, because elements share classes, and the pages of a site share most of them."""
    return sum([_TOKENS.get(word, 0.0) for word in words(name)])


def _as_function(trees: Iterable[Any]) -> Callable[..., float]:
    """The sum of all trees as one Python function: a loop over the nodes of the trees takes four times as long."""
    arguments = [*NAMES, *PAGE_NAMES]
    source = f"lambda {', '.join(arguments)}: {' + '.join(_as_source(tree, arguments) for tree in trees)}"
    function: Callable[..., float] = eval(source, {"__builtins__": {}})  # noqa: S307 - our own data, numbers and names
    return function


def _as_source(tree: Any, arguments: list[str]) -> str:
    if not isinstance(tree, list):
        return repr(float(tree))
    at, limit, left, right = tree
    return f"({_as_source(left, arguments)} if {arguments[at]} <= {float(limit)!r} else {_as_source(right, arguments)})"


score: Final = _as_function(_DATA["trees"])
"""The logarithm of the odds that the text of a group is content, from the numbers of the group and of its page."""

# cython: boundscheck=False, wraparound=False
"""Decision trees in flat tables, and the probability that all of them together give."""

from array import array
from collections.abc import Iterable
from math import exp
from typing import Any, Final

_LEAF: Final = -1


class DecisionTrees:
    """Trees whose leaves are added up. The sum gives a probability.

    A tree is a number, or a list of four: the place of a number in the row, a limit, the tree for numbers up to the
    limit, and the tree for larger numbers.
    """

    def __init__(self, trees: Iterable[Any], width: int) -> None:
        """`width` is the length of a row."""
        place, limit, larger, roots = array("i"), array("d"), array("i"), array("i")

        def add(tree: Any) -> None:
            node = len(place)
            larger.append(0)
            if isinstance(tree, list):
                if not 0 <= tree[0] < width:  # compiled code does not check it again
                    raise ValueError(f"a tree looks at number {tree[0]} of {width}")
                place.append(tree[0])
                limit.append(tree[1])
                add(tree[2])
                larger[node] = len(place)
                add(tree[3])
            else:
                place.append(_LEAF)
                limit.append(tree)

        for tree in trees:
            roots.append(len(place))
            add(tree)
        # Of each node: the place of its number, its limit (of a leaf: its value), and the node for larger numbers. The
        # node for numbers up to the limit is the next one.
        self._place, self._limit, self._larger, self._roots = place, limit, larger, roots
        self._row = array("d", [0.0] * width)

    def probability(self, own: tuple[float, ...], page: tuple[float, ...], near: tuple[float, ...]) -> float:
        """The probability for a row that consists of these three parts."""
        self._fill(own, 0)
        self._fill(page, len(own))
        self._fill(near, len(own) + len(page))
        return 1 / (1 + exp(-self._sum()))

    def _fill(self, part: tuple[float, ...], at: int) -> None:
        if at + len(part) > len(self._row):  # compiled code does not check it again
            raise ValueError(f"more than {len(self._row)} numbers")
        for number in part:
            self._row[at] = number
            at += 1

    def _sum(self) -> float:
        """The sum of the leaves that the row leads to."""
        row, place, limit, larger = self._row, self._place, self._limit, self._larger
        total = 0.0
        for root in self._roots:
            node = root
            while place[node] != _LEAF:
                node = node + 1 if row[place[node]] <= limit[node] else larger[node]
            total += limit[node]
        return total

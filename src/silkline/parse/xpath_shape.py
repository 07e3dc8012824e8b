"""What an XPath does for each node that it finds. This decides how long it may take (xpath_cost.py).

Only forms that are listed here have a known bound: going down, looks at siblings and parents, and tests of ancestors by
their names and attributes. Everything else has none. For example a path from the root in a predicate, the comparison of
two sets of nodes, or the search for a text that is itself taken from the page.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SIBLINGS: Final = frozenset({"parent", "following-sibling", "preceding-sibling"})
_DOWN: Final = frozenset({"descendant", "descendant-or-self"})
_AXES: Final = frozenset({"child", "self", "attribute"}) | _SIBLINGS | _DOWN
_NODE_TYPES: Final = frozenset({"text", "node", "comment", "processing-instruction"})
_SEARCHES: Final = frozenset({"contains", "starts-with", "substring-before", "substring-after", "translate"})
_VALUES: Final = _SEARCHES | {
    *("last", "position", "count", "name", "local-name", "string", "concat", "substring", "string-length"),
    *("normalize-space", "boolean", "not", "true", "false", "number", "sum", "floor", "ceiling", "round"),
}
"""Functions whose value is one text, number or truth. `id` searches the whole page, and `lang` all ancestors."""
_COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})

_TEXT: Final = r"\"[^\"]*\"|'[^']*'"
# A test of an ancestor: its name, and its attributes or its place. It reads no text and no other elements.
_OF_ATTRIBUTES: Final = (
    rf"(?:@[\w:-]++|{_TEXT}|[=,()\s]|!=|\b(?:and|or)\b"
    r"|\b(?:contains|concat|normalize-space|starts-with|not)\s*\((?!\s*\)))+"
)
_ANCESTOR: Final = rf"ancestor(?:-or-self)?\s*::\s*[\w*][\w.-]*+(?:\s*\[(?:\s*(?:\d+|last\(\))\s*|{_OF_ATTRIBUTES})\])*"
_TOKEN: Final = re.compile(
    rf"\s*+(?:(?P<ancestor>{_ANCESTOR})|(?P<text>{_TEXT})|(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<name>[^\W\d][\w.-]*+)"
    r"|(?P<sign>//|::|\.\.|!=|<=|>=|[/.=<>+*|@,()\[\]-])|(?P<other>\S))"
)


class XPathShape(NamedTuple):
    bounded: bool = True
    looks: int = 0
    """At siblings and parents. In predicates, each may be one for each sibling that another one finds."""
    walks: int = 0
    """Down through all that an element contains, in predicates."""
    ancestors: bool = False
    their_attributes: bool = False
    kind: str = "*"
    """Which siblings count."""

    @property
    def linear(self) -> bool:
        return self == XPathShape()


def shape_of(path: str) -> XPathShape:
    return _Scan(path).shape()


class _Scan:
    """Goes over the tokens once."""

    def __init__(self, path: str) -> None:
        self._found = [(str(each.lastgroup), each[str(each.lastgroup)]) for each in _TOKEN.finditer(path)]
        self._open: list[str] = []
        """For each open bracket: `[`, the name of the function, or nothing."""
        self._operand = False
        """Whether an operand ends before this token, so that `*`, `div` and so on are operators."""
        self._single = False
        """Whether that operand is a single value."""
        self._predicates = 0
        self._bounded = True
        self._looks = self._looks_of_predicates = self._walks = 0
        self._ancestors = self._their_attributes = self._nodes = False

    def shape(self) -> XPathShape:
        last = ""
        for at, (kind, part) in enumerate(self._found):
            after = [text for _, text in self._found[at + 1 : at + 3]] + ["", ""]
            if kind == "ancestor":
                self._ancestor(part, after)
            elif kind == "name" or part == "*":
                self._name(part, after[0])
            elif kind == "sign":
                self._sign(part, last, at)
            else:
                self._bounded &= kind != "other"
                self._operand = self._single = True
            last = part
        if not self._bounded:
            return XPathShape(bounded=False)
        # After the first predicate, each node that a look finds may be tested for each node that looks.
        looks = max(self._looks_of_predicates, 1) if self._looks else 0
        kind = "node()" if looks and self._nodes else "*"
        return XPathShape(True, looks, self._walks, self._ancestors, self._their_attributes, kind)

    @property
    def _in_predicate(self) -> bool:
        return "[" in self._open

    def _ancestor(self, part: str, after: list[str]) -> None:
        """In a predicate, nothing but an attribute may be looked up from an ancestor."""
        self._ancestors = self._operand = True
        self._single = False
        self._their_attributes |= "@" in part or after[0] == "/"
        leads_on = after[0] in ("/", "//") and after[:2] != ["/", "@"]
        self._bounded &= after[0] not in ("[", "(", ":", "::") and not (leads_on and self._in_predicate)

    def _name(self, part: str, after: str) -> None:
        if self._operand:  # an operator
            self._operand = self._single = False
            return
        self._operand, self._single = True, False
        if after == "::":
            self._bounded &= part in _AXES
            self._look(part in _SIBLINGS)
            self._walk(part in _DOWN)
        elif after == "(":
            self._bounded &= part in _VALUES | _NODE_TYPES
            self._nodes |= part in _NODE_TYPES

    def _sign(self, part: str, last: str, at: int) -> None:
        if part in ("/", "//"):
            self._bounded &= self._operand or not self._in_predicate
            self._walk(part == "//")
        elif part in _COMPARISONS or part == ",":
            self._bounded &= self._allowed(part, at)
        elif part in ("[", "("):
            self._predicates += part == "["
            self._open.append("[" if part == "[" else last if self._operand else "")
        elif part in ("]", ")"):
            self._close(at)
            return
        elif part == "..":
            self._nodes = True
            self._look(True)
        self._operand, self._single = part in (".", ".."), False

    def _close(self, at: int) -> None:
        opened = self._open.pop() if self._open else ""
        self._operand, self._single = True, opened in _VALUES
        leads_on = at + 1 < len(self._found) and self._found[at + 1][1] in ("/", "//", "[")
        # In a predicate, that would hide what leads on from an ancestor.
        self._bounded &= not (leads_on and opened == "" and self._in_predicate)

    def _allowed(self, part: str, at: int) -> bool:
        """Whether a comparison has a single value on one side, or a function searches for a text of the XPath."""
        (kind, text), (_, then) = (self._found[at + 1 : at + 3] + [("", "")] * 2)[:2]
        if part == ",":
            return kind in ("text", "number") or not self._open or self._open[-1] not in _SEARCHES
        return self._single or kind in ("text", "number") or (text in _VALUES and then == "(")

    def _look(self, looks: bool) -> None:
        self._looks += looks
        self._looks_of_predicates += looks and self._predicates > 0

    def _walk(self, walks: bool) -> None:
        self._walks += walks and self._in_predicate

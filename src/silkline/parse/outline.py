"""The outline of a page: its block elements, with the elements of the same path merged into one group.

Pages are made by templates. All paragraphs of an article, all cards of a shelf and all entries of a menu have the same
path of tags and classes from the body down, so they are one group. Whether a group is content is decided once for all
its elements. Elements whose names say that they are around the content, such as menus and footers, are one group with
all that is in them, if they are small: their parts need not be looked at.

One walk in document order, without recursion: the depth of a page has no limit.
"""

from collections.abc import Callable
from typing import Final

from turbohtml import Element, Text

# fmt: off
INLINE: Final = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "nobr", "picture", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time",
    "tt", "u", "var",
})
_VOID: Final = frozenset({"br", "hr", "img", "source", "wbr"})
# fmt: on
_MAX_GROUPS: Final = 5_000
"""More groups than this are merged into their parents: only hostile pages have so many."""
_PROSE: Final = 80
_CLOSED: Final = -2.0
"""An element whose names have a lower weight is not looked into."""
_SMALL: Final = 0.25
_MAX_LOOKS: Final = 200
"""How often the text of an element is read to see whether it is small. Bounds the time for hostile pages."""

Weigh = Callable[[str, str, Element], float]
"""The weight of the names of an element, from its tag and its classes: below zero if it is hardly content."""


class Group:
    """Block elements with the same path. Sizes are characters: `own` is outside of inner blocks, `text` is all."""

    __slots__ = (
        "blocks",
        "closed",
        "elements",
        "index",
        "last",
        "link",
        "own",
        "own_link",
        "prose",
        "start",
        "tag",
        "text",
        "up",
        "weight",
    )

    def __init__(self, element: Element, tag: str, weight: float, up: "Group | None", index: int, start: int) -> None:
        self.tag = tag
        self.weight = weight
        self.up = up
        self.index = index
        self.start = start
        """The characters of the page before the first element."""
        self.last = start
        """The characters of the page before the last element."""
        self.elements = [element]
        self.closed = False
        self.own = self.own_link = self.text = self.link = self.prose = self.blocks = 0
        """`prose` is text in long blocks that are not links; `blocks` counts the elements with text."""


def outline(body: Element, weigh: Weigh) -> list[Group]:
    """All groups of the page in the order of their first elements; the body is the first."""
    group = Group(body, "body", weigh("body", body.attr("class") or "", body), None, 0, 0)
    groups = [group]
    by_path: dict[tuple[int, str, str | None, bool], Group] = {}
    small, looks = _SMALL * len(body.text), _MAX_LOOKS
    linked, seen = False, 0
    stack = []
    nodes = iter(body.children)
    while True:
        for node in nodes:
            if type(node) is Text:
                size = len(node.data.strip())
                if size:
                    seen += size
                    group.own += size
                    if linked:
                        group.own_link += size
                continue
            if type(node) is not Element:
                continue
            tag = node.tag
            if tag in INLINE:
                inside = node.children
                if not inside:
                    continue
                link = linked or (tag == "a" and is_link(node))
                if len(inside) == 1 and type(only := inside[0]) is Text:
                    size = len(only.data.strip())
                    seen += size
                    group.own += size
                    if link:
                        group.own_link += size
                    continue
                stack.append((nodes, group, linked))
                linked = link
            elif tag in _VOID:
                continue
            else:
                names = node.attr("class")
                inside = node.children
                # A paragraph that is only a link differs from its neighbours: "Read also: ...".
                alone = inside[0] if len(inside) == 1 else None
                path = (group.index, tag, names, type(alone) is Element and alone.tag == "a")
                found = by_path.get(path)
                if found is not None:
                    found.elements.append(node)
                    found.last = seen
                elif len(groups) < _MAX_GROUPS:
                    weight = weigh(tag, names or "", node)
                    found = Group(node, tag, weight, group, len(groups), seen)
                    by_path[path] = found
                    groups.append(found)
                    if weight < _CLOSED and looks:
                        looks -= 1
                        found.closed = len(node.text) < small
                else:
                    found = group
                if found.closed:
                    size = len(node.text.strip())
                    seen += size
                    found.own += size
                    found.own_link += size
                    continue
                if not inside:
                    continue
                if type(alone) is Text:
                    size = len(alone.data.strip())
                    seen += size
                    found.own += size
                    if linked:
                        found.own_link += size
                    continue
                stack.append((nodes, group, linked))
                group = found
            nodes = iter(inside)
            break
        else:
            if not stack:
                break
            nodes, group, linked = stack.pop()
    _add_up(groups)
    return groups


def _add_up(groups: list[Group]) -> None:
    """Adds the sizes of each group to its parent, inner groups first."""
    for group in reversed(groups):
        own, up = group.own, group.up
        if own:
            count = len(group.elements)
            group.text += own
            group.link += group.own_link
            group.blocks += count
            if own >= _PROSE * count and group.own_link < 0.4 * own:
                group.prose += own
        if up is not None and (text := group.text):
            up.text += text
            up.link += group.link
            up.prose += group.prose
            up.blocks += group.blocks


def is_link(anchor: Element) -> bool:
    """Whether the anchor links to another page. A footnote or a permalink to a heading does not."""
    href = anchor.attr("href")
    return href is not None and href[:1] != "#"

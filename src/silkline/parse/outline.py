"""The outline of a page: its block elements with text, with the elements of the same path merged into one group.

Pages are made by templates. All paragraphs of an article, all cards of a shelf and all entries of a menu have the same
path of tags and classes from the body down, so they are one group. Whether a group is content is decided once for all
its elements. Elements whose names say that they are around the content, such as menus and footers, are one group with
all that is in them, if they are small and without a headline: their parts need not be looked at.

The walk goes over the texts of the page, and from each of them up to the first element that is known already. So it
sees every element with text once, and no others.
"""

from collections.abc import Callable
from typing import Final

from turbohtml import Element, Node, NodeFilter, TreeWalker

from silkline.parse.letters import stripped_length

# fmt: off
INLINE: Final = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "nobr", "picture", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time",
    "tt", "u", "var",
})
# fmt: on
_MAX_GROUPS: Final = 5_000
"""More groups than this are merged into their parents: only hostile pages have so many."""
_PROSE: Final = 80
_CLOSED: Final = -1.0
"""An element whose names have a lower weight is not looked into, unless it has paragraphs and is not short."""
_LITTLE: Final = 300
_SHUT: Final = -3.0
"""An element whose names have a lower weight is not looked into even if it has paragraphs."""
_SMALL: Final = 0.25
_MAX_LOOKS: Final = 200
"""How often the text of an element is read to see whether it is small. Bounds the time for hostile pages."""
_MAX_OPENINGS: Final = 4
"""How many closed groups are looked into after all. Each of them is walked a second time."""

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


_Home = tuple[Group, bool]
"""Of an element with text: its group, and whether its text is a link."""
_Inner = dict[str | None, dict[str, _Home]]
"""The homes of the elements in a group, by their classes and their tag."""


class Outline:
    """The groups of a page in the order of their first texts; the body is the first group."""

    def __init__(self, body: Element, weigh: Weigh, size: int | None = None) -> None:
        """`size` is about the length of the text of the body, if it is known already."""
        self.body = body
        top = Group(body, "body", weigh("body", body.attr("class") or "", body), None, 0, 0)
        self.groups = [top]
        self._weigh = weigh
        self._homes: dict[Node | None, _Home] = {body: (top, False), None: (top, False)}
        self._homes_of: list[_Home] = [(top, False)]
        """The homes of the groups: elements share them."""
        self._in: list[_Inner] = [{}]
        self._links_in: list[_Inner] = [{}]
        """The same for elements that are in a link, or only a link."""
        self._small = _SMALL * (len(body.text) if size is None else size)
        self._looks = _MAX_LOOKS
        self._openings = _MAX_OPENINGS
        self._seen = 0
        self._texts = TreeWalker(body, NodeFilter.SHOW_TEXT)
        self._walk()
        self._add_up()

    def has_text(self, element: Element) -> bool:
        """Whether there is text in the element. Not known for elements in closed groups."""
        return element in self._homes

    def _walk(self) -> None:
        homes, next_text = self._homes, self._texts.next_node
        while (text := next_text()) is not None:
            size = stripped_length(text.data)  # type: ignore[attr-defined] # a Text
            if size:
                parent = text.parent
                home = homes.get(parent) or self._place(parent)
                if home is not None:
                    group, linked = home
                    self._seen += size
                    group.own += size
                    if linked:
                        group.own_link += size

    def _place(self, element: Node | None) -> _Home | None:
        """Finds the group of an element that is not known yet, and those of the elements above it.

        None if one of them is closed: then all its text has been counted.
        """
        homes, inline = self._homes, INLINE
        chain: list[Element] = []
        while (home := homes.get(element)) is None:
            chain.append(element)  # type: ignore[arg-type] # an Element: the body and None are known
            element = element.parent  # type: ignore[union-attr]
        group, linked = home
        below = chain[-1].tag
        while chain:
            inner, tag = chain.pop(), below
            below = chain[-1].tag if chain else ""
            if tag not in inline:
                names = inner.attr("class")
                # A block that is only a link differs from its neighbours: "Read also: ...".
                around = group.index
                inside = self._links_in[around] if linked or (below == "a" and len(inner) == 1) else self._in[around]
                by_tag = inside.get(names)
                found = by_tag.get(tag) if by_tag is not None else None
                if found is not None:
                    group = found[0]
                    group.elements.append(inner)
                    group.last = self._seen
                else:
                    group = self._new_group(inner, tag, names, group)
                    found = self._homes_of[group.index]
                    if group.index != around:
                        if by_tag is None:
                            inside[names] = {tag: found}
                        else:
                            by_tag[tag] = found
                home = (group, True) if linked else found
                if group.closed:
                    homes[inner] = home
                    self._skip(inner, group)
                    return None
            elif tag == "a" and not linked and is_link(inner):
                linked = True
                home = (group, True)
            homes[inner] = home
        return home

    def _new_group(self, element: Element, tag: str, names: str | None, up: Group) -> Group:
        groups = self.groups
        if len(groups) >= _MAX_GROUPS:
            return up
        weight = self._weigh(tag, names or "", element)
        group = Group(element, tag, weight, up, len(groups), self._seen)
        groups.append(group)
        self._homes_of.append((group, False))
        self._in.append({})
        self._links_in.append({})
        if weight < _CLOSED and self._looks:
            self._looks -= 1
            size = len(element.text)
            prose = weight > _SHUT and size > _LITTLE and element.find("p") is not None
            group.closed = size < self._small and not prose and element.find("h1") is None
        return group

    def _skip(self, element: Element, group: Group) -> None:
        """Counts all text of an element of a closed group, and goes on after it."""
        size = len(element.text.strip())
        seen = self._seen + size
        group.own += size
        group.own_link += size
        if self._openings and group.own >= self._small and len(group.elements) > 1:
            self._open(group)
        self._seen = seen
        self._texts.current_node = element
        while self._texts.last_child() is not None:
            pass

    def _open(self, group: Group) -> None:
        """Looks into a closed group after all: each element is small, but together they are much of the page."""
        self._openings -= 1
        group.closed = False
        group.own = group.own_link = 0
        texts = self._texts
        self._seen = group.start
        for element in group.elements:
            self._texts = TreeWalker(element, NodeFilter.SHOW_TEXT)
            self._walk()
        self._texts = texts

    def _add_up(self) -> None:
        """Adds the sizes of each group to its parent, inner groups first."""
        for group in reversed(self.groups):
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

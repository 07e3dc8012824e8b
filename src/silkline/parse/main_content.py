"""Chooses the content of a page: the groups of the outline that give the best expected result.

For each group the page model says how probable it is that it is content. The choice is the set of groups with the
highest expected F1, the harmonic mean of precision and recall. So it adapts to the page: where the model is sure, only
the sure groups are kept; where it is not, more is kept. The expected F1 of the choice is its confidence.
"""

from typing import Final, NamedTuple

from turbohtml import Element, Node, Text

from silkline.parse.block_features import describe
from silkline.parse.outline import INLINE, Group, Outline
from silkline.parse.page_model import TAGS, likelihoods, weigh

_SHARPNESS: Final = 1.2
_REPEATED: Final = 3
_MOST: Final = 0.5
_LINKED: Final = 0.3
_REFERENCE: Final = frozenset({"dd", "dt", "pre", "td", "th"})
_SECTIONS: Final = 4
_MOST_OF: Final = 0.75
_SHORT_PAGE: Final = 200  # characters
_ENOUGH: Final = 400
_NEAR: Final = 8
_PICTURES: Final = frozenset({"figure", "p"})
_EMPTY: Final = ("img", "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6")
_WITHIN_TEXT: Final = frozenset({"blockquote", "dd", "dt", "li", "p", "pre", "td", "th", "h2", "h3", "h4"})
_HEADINGS: Final = frozenset({"h2", "h3", "h4"})
_SUSPECT: Final = -1.0


class Choice(NamedTuple):
    """The groups of a page that are content, and what is known about the choice."""

    outline: Outline
    kept: set[int]
    confidence: float
    rule: str
    """What sort of page this is: text, posts, cards, sections or reference."""

    @property
    def share(self) -> float:
        """The share of the text of the page that is content."""
        groups = self.outline.groups
        return sum([groups[index].own for index in self.kept]) / max(groups[0].text, 1)


def choose(body: Element, url: str, size: int) -> Choice:
    """The content of the page; `size` is about the length of the text of its body."""
    outline = Outline(body, weigh, size)
    groups = outline.groups
    described = describe(groups, url, TAGS)
    leaves = described.leaves
    found = [
        (likely**_SHARPNESS, group.index, group.own)
        for likely, group in zip(likelihoods(groups, described), leaves, strict=True)
    ]
    found.sort(reverse=True)
    expected = sum([likely * size for likely, _, size in found])
    right = taken = best = 0.0
    count = 0
    for at, (likely, _, size) in enumerate(found, 1):
        right += likely * size
        taken += size
        quality = right / (taken + expected)
        if quality > best:
            best, count = quality, at
    kept = {index for _, index, _ in found[:count]}
    _drop_menus(groups, kept)
    _fill(groups, leaves, kept)
    return Choice(outline, kept, 2 * best, _sort_of(groups, kept))


def _drop_menus(groups: list[Group], kept: set[int]) -> None:
    """Removes the links in `<nav>` elements, if there is a text besides them.

    A long menu beside a short text looks like an index page, whose links are its content.
    """
    inside = [False] * len(groups)
    for group in groups:
        inside[group.index] = group.tag == "nav" or (group.up is not None and inside[group.up.index])
    menus = {index for index in kept if inside[index] and groups[index].own_link > _MOST * groups[index].own}
    if menus and sum([groups[index].own for index in kept - menus]) > _SHORT_PAGE:
        kept -= menus


def _fill(groups: list[Group], leaves: list[Group], kept: set[int]) -> None:
    """Adds the headline, and what is in the midst of the content: a short list or a table between two paragraphs.

    A page with very little text tells too little to leave anything out.
    """
    if groups[0].text <= _SHORT_PAGE:
        kept.update(group.index for group in groups if not group.closed and _is_plain(group, groups[0]))
    if not kept:
        kept.update([group.index for group in leaves if not group.closed] or [group.index for group in leaves])
        return
    sizes = [0] * len(groups)
    for group in reversed(groups):
        if group.index in kept:
            sizes[group.index] += group.own
        if group.up is not None:
            sizes[group.up.index] += sizes[group.index]
    headline = next((group for group in leaves if group.tag == "h1" and not group.closed), None)
    if headline is not None and _is_plain(headline, groups[0]):
        kept.add(headline.index)
    last = max([groups[index].last for index in kept])
    for group in leaves:
        if group.index in kept or group.closed or group.tag not in _WITHIN_TEXT:
            continue
        if group.tag == "pre":
            kept.add(group.index)
        if group.start >= last:
            continue
        linked = group.own_link > _LINKED * group.own
        if group.tag in _HEADINGS and _heads_content(group, sizes, linked):
            kept.add(group.index)
        if linked or group.index in kept:
            continue
        around: Group | None = group
        # Only elements without classes: they come from the text of an author, not from the template of a site.
        for _ in range(_NEAR):
            if around is None or around.elements[0].attr("class") is not None:
                break
            around = around.up
            if around is not None and sizes[around.index] >= max(_MOST_OF * around.text, _ENOUGH):
                kept.add(group.index)
                break


def _heads_content(heading: Group, sizes: list[int], linked: bool) -> bool:
    """Whether most of the text beside the heading is kept. A heading that is a link must be the first of that text."""
    up = heading.up
    if up is None or (linked and heading.start > up.start):
        return False
    return sizes[up.index] >= max(_MOST_OF * (up.text - heading.own), 1)


def _is_plain(group: Group, body: Group) -> bool:
    """Whether no name around the group says that it is not content."""
    around: Group | None = group
    while around is not None and around is not body:
        if around.weight < _SUSPECT:
            return False
        around = around.up
    return True


def remove_rest(choice: Choice) -> None:
    """Removes from the document all elements that hold nothing of the choice, and loose text that is not chosen."""
    groups, kept = choice.outline.groups, choice.kept
    needed = [False] * len(groups)
    for group in reversed(groups):
        if needed[group.index] or group.index in kept:
            needed[group.index] = True
            if group.up is not None:
                needed[group.up.index] = True
    for group in groups:
        up = group.up
        if not needed[group.index]:
            if up is not None and needed[up.index]:
                for element in group.elements:
                    element.extract()
        elif group.own and group.index not in kept:
            for element in group.elements:
                _remove_loose(element)
    _remove_empty(choice)


def _remove_empty(choice: Choice) -> None:
    """Removes headings and entries without text, and images that are in boxes of their own."""
    outline = choice.outline
    closed = [outline.groups[index] for index in choice.kept if outline.groups[index].closed]
    unknown = {inner for group in closed for element in group.elements for inner in element.iter_elements(_EMPTY)}
    for element in list(outline.body.iter_elements(_EMPTY)):
        if outline.has_text(element) or element in unknown:
            continue
        above: Node | None = element.parent if element.tag == "img" else element
        for _ in range(_NEAR):
            if not isinstance(above, Element) or outline.has_text(above):
                break
            if above.tag not in INLINE and above.tag not in _PICTURES:
                element.extract()
                break
            above = above.parent
        else:
            element.extract()


def _remove_loose(element: Element) -> None:
    """Removes the text of an element that is outside of its inner blocks."""
    for child in list(element.children):
        if isinstance(child, Text) or (isinstance(child, Element) and child.tag in INLINE and not _holds_block(child)):
            child.extract()


def _holds_block(element: Element) -> bool:
    return any(inner.tag not in INLINE and inner.tag not in ("img", "br") for inner in element.iter_elements())


def _sort_of(groups: list[Group], kept: set[int]) -> str:
    """What sort of page this is, by the structure of what is kept."""
    size = sum([groups[index].own for index in kept])
    repeated: dict[int, list[int]] = {}
    holder: list[int] = [-1] * len(groups)
    reference = sections = 0
    for group in groups:
        up = group.up
        if up is None:
            continue
        inside = holder[up.index]
        if inside < 0 and len(group.elements) >= _REPEATED * len(up.elements) and group.tag not in ("p", "tr", "br"):
            inside = group.index
        holder[group.index] = inside
        if group.index not in kept:
            continue
        if inside >= 0 and inside != group.index:
            sums = repeated.setdefault(inside, [0, 0])
            sums[0] += group.own
            sums[1] += group.own_link
        if group.tag in _REFERENCE:
            reference += group.own
        elif group.tag in ("h2", "h3"):
            sections += len(group.elements)
    if reference > _MOST * size:
        return "reference"
    most = max(repeated.values(), default=[0, 0])
    if most[0] > _MOST * size:
        return "cards" if most[1] > _LINKED * most[0] else "posts"
    return "sections" if sections >= _SECTIONS else "text"

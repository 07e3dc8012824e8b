"""Removes from the main content what is not part of it: share buttons, teasers, menus, forms, comments.

Uses the place and the measures that `article.py` found, and changes the document. Inside the core, only suspicious
elements are removed. Around the core, only prose is kept.
"""

from typing import Final

from turbohtml import Element, Node, Text

from silkline.parse.article import (
    HEADINGS,
    INLINE,
    ContentPlace,
    Measure,
    Measures,
    blocks_around,
    is_link,
    name_verdict,
)
from silkline.parse.names import Suspect

_BOXES: Final = HEADINGS - {"h1"} | {
    "article",
    "div",
    "dl",
    "figure",
    "form",
    "header",
    "ol",
    "p",
    "section",
    "table",
    "ul",
}
_LOOSE: Final = frozenset({"article", "body", "div", "main", "section", "td"})
_LISTS: Final = frozenset({"div", "section", "ul"})
_PICTURES: Final = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg")
_LISTING: Final = 200
_EMPTYABLE: Final = frozenset({"div", "form", "header", "section", "ul"})


def trim(found: ContentPlace) -> None:
    """Keeps in the frame only what belongs to the content."""
    core, frame, headline, measures = found
    size = max(measures[core].text, 1)
    around_headline: set[Node] = {headline, *headline.ancestors} if headline is not None else set()
    around_core: set[Node] = {core, *core.ancestors}
    for outer in blocks_around(core, frame, measures):
        before = True
        for child in list(outer.children):
            if child in around_core:
                before = False
            elif isinstance(child, Element) and child in around_headline:
                _keep_headline(child, headline, around_headline, measures)
            elif not isinstance(child, Element) or not _may_stay(child, measures, before, headline is not None):
                child.extract()
            else:
                _trim_inside(child, measures, size)
    _trim_inside(core, measures, size)
    _trim_end(found)
    _trim_pictures(found)


def _may_stay(element: Element, measures: Measures, before: bool, headlined: bool) -> bool:
    """Whether an element of the frame, before or after the core, is content."""
    at = measures.get(element)
    if at is None:
        return False
    if before and element.tag in ("h1", "h2", "h3"):
        return at.link < at.text / 2
    if at.prose < 40 or at.link > at.text / 4 or at.suspect > Suspect.LEAD:
        return False
    if before:
        return True
    solid = at.prose >= 80 and at.prose > 0.7 * at.text
    return headlined and solid and not at.suspect and not _is_list_of_cards(element, measures)


def _keep_headline(element: Element, headline: Element | None, around_headline: set[Node], measures: Measures) -> None:
    """Reduces the element that holds the headline to the headline and the prose beside it."""
    stack = [element]
    while stack:
        holder = stack.pop()
        if holder == headline:
            continue
        for child in list(holder.children):
            if isinstance(child, Element):
                if child in around_headline:
                    stack.append(child)
                elif not _may_stay(child, measures, before=True, headlined=True):
                    child.extract()
            elif isinstance(child, Text) and len(child.data.strip()) < 40:
                child.extract()


def _trim_inside(root: Element, measures: Measures, size: int) -> None:
    """Removes suspicious elements from the core, or from a part of its frame. `size` is the text size of the core.

    A page with very little prose is a list. There, elements are removed only because of their names.
    """
    at = measures[root]
    by_name = _suspect_text(root, measures) < 0.6 * at.text
    listing = at.all_prose < _LISTING
    scattered = not listing and at.prose < at.text / 2
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag in _LOOSE and not listing:
            for stray in _strays(element):
                stray.extract()
        for child in list(element.children):
            inner = measures.get(child) if isinstance(child, Element) else None
            if inner is None or not isinstance(child, Element):
                continue
            out = by_name and _is_suspect(inner, size)
            if not out and not listing:
                heads_preview = element != root and inner.tag in HEADINGS and measures[element].prose >= 40
                out = not heads_preview and _is_conspicuous(child, inner, measures, size, scattered)
            if out:
                child.extract()
            elif inner.tag != "p":
                stack.append(child)


def _suspect_text(root: Element, measures: Measures) -> int:
    """The amount of text in elements with suspect names. If this is most of the text, the names mean nothing."""
    total, stack = 0, [root]
    while stack:
        for child in stack.pop().children:
            if isinstance(child, Element) and child in measures:
                if measures[child].suspect:
                    total += measures[child].text
                else:
                    stack.append(child)
    return total


def _is_suspect(at: Measure, size: int) -> bool:
    return bool(at.suspect) and at.text < (0.8 if at.suspect is Suspect.COMMENTS else 0.5) * size


def _is_conspicuous(element: Element, at: Measure, measures: Measures, size: int, scattered: bool) -> bool:
    """Whether this is a list of links, a form, a list of cards, or, if texts are scattered, a box without prose."""
    tag = element.tag
    if tag in _BOXES and at.text and at.link > 0.6 * at.text and at.prose < 60:
        return tag != "table" or element.find("th") is None
    if tag == "form" and at.text < size / 2:
        return True
    if scattered and tag in _EMPTYABLE and at.text and not at.prose:
        return True
    return tag in _LISTS and at.text < 0.4 * size and at.link > 0.2 * at.text and _is_list_of_cards(element, measures)


def _is_list_of_cards(element: Element, measures: Measures) -> bool:
    """Whether most children are short and linked: previews of other pages."""
    children = [child for child in element.children if isinstance(child, Element)]
    cards = 0
    for child in children:
        at = measures.get(child)
        if at is not None and at.text < 500 and at.link > max(15, 0.15 * at.text):
            cards += 1
    return cards >= 2 and cards >= 0.7 * len(children)


def _strays(element: Element) -> list[Element]:
    """Links, dates and similar elements alone on a line, outside of sentences. A line ends at a break or a block."""
    strays: list[Element] = []
    line: list[Element] = []
    in_sentence = False
    for child in element.children:
        if isinstance(child, Text):
            in_sentence = in_sentence or bool(child.data.strip())
        elif isinstance(child, Element):
            if child.tag == "br" or child.tag not in INLINE:
                strays += [] if in_sentence else line
                line, in_sentence = [], False
            elif child.tag == "time" or (child.tag == "a" and is_link(child)) or name_verdict(child):
                line.append(child)
            else:
                in_sentence = True
    strays += [] if in_sentence else line
    return [stray for stray in strays if stray.find("img") is None]


def _trim_end(found: ContentPlace) -> None:
    """Removes headings at the end, because the text under them was removed."""
    blocks = [
        element
        for element in found.frame.iter_elements()
        if (at := found.measures.get(element)) is not None and (at.own or element.tag in HEADINGS)
    ]
    while blocks and blocks[-1].tag in HEADINGS and blocks[-1] != found.headline:
        blocks.pop().extract()


def _trim_pictures(found: ContentPlace) -> None:
    """Removes pictures that link to other pages: previews and advertisements. A link to the larger picture is kept."""
    for image in found.frame.find_all("img"):
        holder = image.parent
        for _ in range(4):
            if not isinstance(holder, Element) or holder.tag == "a":
                break
            holder = holder.parent
        if isinstance(holder, Element) and holder.tag == "a" and is_link(holder):
            path = (holder.attr("href") or "").partition("?")[0].lower()
            if not path.endswith(_PICTURES):
                image.extract()

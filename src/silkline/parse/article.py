"""Finds the main content of a page on the parsed DOM: measure, choose, trim.

Prose decides: text in blocks of forty characters or more that is not mostly links. The **core** is the smallest element
that holds most of the prose of the page. The **frame** around it also holds the headline and the text between the two
(a lead, a standfirst). Then elements that do not belong to the content, by their names, links or shape, are removed
from both (`trim.py`). The rules use no words of a human language in the text. They use words only in the class names
and ids of elements.
"""

import re
from typing import Final, NamedTuple

from turbohtml import Document, Element, Node, Text

from silkline.parse.names import Suspect, suspicion

# Never content, at any place of the page.
JUNK: Final = (
    "script,style,template,iframe,svg,canvas,object,embed,audio,video,map,button,select,textarea,input,label,dialog,menu,"
    "nav,aside,footer,figcaption,[hidden],[aria-hidden=true],[role=navigation],[role=banner],[role=contentinfo],"
    "[role=complementary],[role=search],[role=dialog],[role=alertdialog],[role=menu],[role=toolbar],[role=button],"
    "[style*='display:none'],[style*='display: none'],[style*='visibility:hidden']"
)
# fmt: off
INLINE: Final = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "del", "dfn", "em", "font", "i", "img",
    "ins", "kbd", "mark", "nobr", "picture", "q", "s", "samp", "small", "source", "span", "strike", "strong", "sub",
    "sup", "time", "tt", "u", "var", "wbr",
})
HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
# The search for the core does not go into these elements: their content belongs together.
_WHOLE: Final = HEADINGS | {
    "blockquote", "dd", "dl", "dt", "figure", "li", "ol", "p", "pre", "ul",
}
_TABLE_PARTS: Final = frozenset({"table", "tbody", "tfoot", "thead", "tr"})
# fmt: on
_PROSE: Final = 40
_DOMINATES: Final = 0.7
_SUSPECT_WEIGHT: Final = 0.2
_SMALL: Final = 400
_SMALL_ONLY: Final = (Suspect.SMALL, Suspect.LEAD)
_TRUSTED: Final = ("body", "main", "article")
_LITTLE: Final = 400
_ARTICLE: Final = 500
_WORD: Final = re.compile(r"\w{3,}")


class Measure:
    """The amounts of text in one block element with its descendants. `own` is the text outside of inner blocks."""

    __slots__ = ("all_prose", "code", "link", "own", "own_link", "prose", "suspect", "tag", "text", "up")

    def __init__(self, tag: str, up: "Measure | None") -> None:
        self.tag = tag
        self.up = up
        self.own = self.own_link = self.text = self.link = self.code = 0
        self.prose = 0.0
        """Prose. The prose of suspect elements has a lower weight."""
        self.all_prose = 0
        self.suspect = Suspect.NO


Measures = dict[Element, Measure]


class ContentPlace(NamedTuple):
    """The place of the content. `core` is inside `frame`; both may be the whole body."""

    core: Element
    frame: Element
    headline: Element | None
    measures: Measures


def find(document: Document) -> ContentPlace | None:
    """The main content of a document without JUNK; None if there is no body."""
    body = document.find("body")
    if body is None:
        return None
    measures = measure(body)
    headline = _headline(document, measures)
    core = _core(body, headline, measures)
    little = measures[core].prose
    if little < _LITTLE and measures[body].all_prose > 2.5 * little:
        # The names were misleading: nearly all prose is suspect. From now on only comments are suspect.
        for each in measures.values():
            each.suspect = each.suspect if each.suspect is Suspect.COMMENTS else Suspect.NO
            each.prose = each.all_prose
        core = _core(body, headline, measures)
    return ContentPlace(core, _frame(core, body, headline, measures), headline, measures)


def is_link(anchor: Element) -> bool:
    """Whether the anchor links to another page. A footnote or a permalink to a heading does not."""
    href = anchor.attr("href")
    return href is not None and href[:1] != "#"


def name_verdict(element: Element) -> Suspect:
    """How suspect an element is by its class and id."""
    names = element.attr("class")
    verdict = suspicion(names) if names else Suspect.NO
    if verdict is Suspect.NO:
        ident = element.attr("id")
        return suspicion(ident) if ident else verdict
    return verdict


def measure(body: Element) -> Measures:
    """Measures every block element in one walk down and one up."""
    at = Measure(body.tag, None)
    # For each element: the measure of its block, and whether it is inside a link.
    places: dict[Node | None, tuple[Measure, bool]] = {body: (at, False)}
    blocks = [(body, at)]
    for node in body.descendants:
        if type(node) is Text:
            size = len(node.data.strip())
            if size:
                at, in_link = places[node.parent]
                at.own += size
                if in_link:
                    at.own_link += size
        elif type(node) is Element:
            place = places[node.parent]
            tag = node.tag
            if tag not in INLINE:
                at = Measure(tag, place[0])
                blocks.append((node, at))
                place = (at, place[1])
            elif tag == "a" and is_link(node):
                place = (place[0], True)
            places[node] = place
    _add_up(blocks)
    return dict(blocks)


def _add_up(blocks: list[tuple[Element, Measure]]) -> None:
    """Completes each measure, inner blocks first, and adds it to its parent. One function: calls would cost 8 %."""
    for element, at in reversed(blocks):
        own, tag, up = at.own, at.tag, at.up
        if own:
            at.text += own
            at.link += at.own_link
            if own >= _PROSE and at.own_link < own / 2 and tag not in HEADINGS:
                at.prose += own - at.own_link
                at.all_prose += own - at.own_link
        if tag == "pre":
            at.code = at.text
        text = at.text
        if tag not in _TRUSTED and at.code <= text / 2:
            names = element.attr("class")
            suspect = suspicion(names) if names else Suspect.NO
            if not suspect and (names := element.attr("id")):
                suspect = suspicion(names)
            if suspect and not (text > _SMALL and suspect in _SMALL_ONLY):
                at.suspect = suspect
        if text and up is not None:
            up.text += text
            up.link += at.link
            up.code += at.code
            up.all_prose += at.all_prose
            up.prose += _weight(at)


def _weight(at: Measure) -> float:
    return at.prose * _SUSPECT_WEIGHT if at.suspect else at.prose


def _headline(document: Document, measures: Measures) -> Element | None:
    """The heading that repeats most of the page's title, or the first h1."""
    title = document.find("title")
    wanted = set(_WORD.findall(title.text.lower()[:500])) if title is not None else set()
    best, best_score = None, 0.0
    for heading in document.find_all(["h1", "h2", "h3"], limit=60):
        text = heading.text.strip()
        if not text or len(text) > 300 or heading not in measures:
            continue
        words = set(_WORD.findall(text.lower()))
        score = len(words & wanted) / max(len(words), 2) + (0.5 if heading.tag == "h1" else 0)
        if score > best_score:
            best, best_score = heading, score
    return best if best is not None and (best_score >= 0.6 or best.tag == "h1") else None


def _core(body: Element, headline: Element | None, measures: Measures) -> Element:
    """Goes from the body to the child that holds most of the prose, again and again, until no child does."""
    here = core = body
    around_headline: set[Node] = set(headline.ancestors) if headline is not None else set()
    inside_article = False
    while True:
        # The core may be a cell of a table, but not a table. If no cell dominates, the core is the parent of the table.
        core = here if here.tag not in _TABLE_PARTS else core
        children = [child for child in here.children if isinstance(child, Element) and child in measures]
        if not children:
            return core
        if not inside_article:
            chosen = _headlined_article(children, around_headline, measures)
            if chosen is not None:
                here, inside_article = chosen, True
                continue
        best = max(children, key=lambda child: _weight(measures[child]))
        total = sum(_weight(measures[child]) for child in children) + measures[here].own - measures[here].own_link
        if _weight(measures[best]) <= _DOMINATES * max(total, 1) or best.tag in _WHOLE:
            return core
        if best.tag == "table" and measures[best].prose < _ARTICLE:
            return core
        here, inside_article = best, inside_article or best.tag == "article"


def _headlined_article(children: list[Element], around_headline: set[Node], measures: Measures) -> Element | None:
    """Of several articles in a row, as on pages with infinite scrolling, the one that holds the headline."""
    articles = [child for child in children if child.tag == "article" and measures[child].prose > 200]
    if len(articles) < 2:
        return None
    longest = max(measures[article].prose for article in articles)
    named = [article for article in articles if article in around_headline]
    return named[0] if named and measures[named[0]].prose > longest / 4 else None


def _frame(core: Element, body: Element, headline: Element | None, measures: Measures) -> Element:
    """The smallest element around the core that holds the headline. Without a headline: one with little more prose."""
    path = [core, *blocks_around(core, body, measures)]
    if headline is not None:
        around = set(headline.ancestors)
        return next((element for element in path if element in around), body)
    limit = 1.35 * measures[core].prose
    frame = core
    for element in path[1:]:
        if element == body or measures[element].prose > limit:
            break
        frame = element
    return frame


def blocks_around(element: Element, outermost: Element, measures: Measures) -> list[Element]:
    """The block elements around an element, from the nearest to the outermost."""
    around: list[Element] = []
    for above in element.ancestors:
        if element == outermost:
            break
        if isinstance(above, Element) and above in measures:
            around.append(above)
        if above == outermost:
            break
    return around

"""Finds the main content of a page on the parsed DOM: measure, choose, trim.

Prose is what counts: text in blocks of forty characters or more that is not mostly links. The **core** is the smallest
element that holds most of the page's prose; the **frame** around it also holds the headline, and adds what stands
between the two (a lead, a standfirst). Both are then trimmed of what names, links or shape give away as something else
(`trim.py`). No word of any human language is looked for in the text, only in the names that site makers give.
"""

import re
from typing import Final, NamedTuple

from turbohtml import Document, Element, Node, Text

from silkline.parse.names import Suspect, suspicion

# Never content, wherever they stand.
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
# Where the way down to the core ends: what is inside belongs together.
_WHOLE: Final = HEADINGS | {
    "blockquote", "dd", "dl", "dt", "figure", "li", "ol", "p", "pre", "table", "tbody", "td", "th", "tr", "ul",
}
# fmt: on
_PROSE: Final = 40
_DOMINATES: Final = 0.7
_SUSPECT_WEIGHT: Final = 0.2
_SMALL: Final = 400
_LITTLE: Final = 400
_WORD: Final = re.compile(r"\w{3,}")


class Measure:
    """What one block element holds, its descendants included; `own` is the text that belongs to no inner block."""

    __slots__ = ("all_prose", "code", "link", "own", "own_link", "prose", "suspect", "text", "up")

    def __init__(self, up: Element | None) -> None:
        self.up = up
        self.own = self.own_link = self.text = self.link = self.code = 0
        self.prose = 0.0
        """Prose, that of suspects at a discount."""
        self.all_prose = 0
        self.suspect = Suspect.NO


Measures = dict[Element, Measure]


class Found(NamedTuple):
    """Where the content is. `core` lies within `frame`; both may be the whole body."""

    core: Element
    frame: Element
    headline: Element | None
    measures: Measures


def find(document: Document) -> Found | None:
    """The main content of a document that JUNK was removed from; None if there is no text."""
    body = document.find("body")
    if body is None:
        return None
    measures = measure(body)
    headline = _headline(document, measures)
    core = _core(body, headline, measures)
    little = measures[core].prose
    if little < _LITTLE and measures[body].all_prose > 2.5 * little:
        # Names have misled us: hardly any prose is free of suspicion. Only comments remain suspect.
        for each in measures.values():
            each.suspect = each.suspect if each.suspect is Suspect.COMMENTS else Suspect.NO
            each.prose = each.all_prose
        core = _core(body, headline, measures)
    return Found(core, _frame(core, body, headline, measures), headline, measures)


def is_link(anchor: Element) -> bool:
    """Whether it leads away; a footnote or a permalink to a heading does not."""
    href = anchor.attr("href")
    return href is not None and href[:1] != "#"


def name_verdict(element: Element) -> Suspect:
    """What the names of an element give away."""
    names, ident = element.attr("class"), element.attr("id")
    return suspicion(f"{names or ''} {ident or ''}") if names or ident else Suspect.NO


def measure(body: Element) -> Measures:
    """Measures every block element in one walk down and one up."""
    measures: Measures = {body: Measure(None)}
    places: dict[Node | None, tuple[Element, bool]] = {body: (body, False)}
    for node in body.descendants:
        block, in_link = places[node.parent]
        if isinstance(node, Text):
            size = len(node.data.strip())
            if size:
                at = measures[block]
                at.own += size
                if in_link:
                    at.own_link += size
        elif isinstance(node, Element):
            if node.tag not in INLINE:
                measures[node] = Measure(block)
                block = node
            elif node.tag == "a":
                in_link = in_link or is_link(node)
            places[node] = (block, in_link)
    for element in reversed(list(measures)):
        _add_up(element, measures)
    return measures


def _add_up(element: Element, measures: Measures) -> None:
    at = measures[element]
    at.text += at.own
    at.link += at.own_link
    at.code = at.text if element.tag == "pre" else at.code
    if at.own >= _PROSE and at.own_link < at.own / 2 and element.tag not in HEADINGS:
        at.prose += at.own - at.own_link
        at.all_prose += at.own - at.own_link
    if element.tag not in ("body", "main", "article") and at.code <= at.text / 2:
        at.suspect = name_verdict(element)
        if at.suspect in (Suspect.SMALL, Suspect.LEAD) and at.text > _SMALL:
            at.suspect = Suspect.NO
    if at.up is not None:
        above = measures[at.up]
        above.text += at.text
        above.link += at.link
        above.code += at.code
        above.all_prose += at.all_prose
        above.prose += _weight(at)


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
    """Goes down from the body as long as one child holds most of the prose."""
    here = body
    around_headline: set[Node] = set(headline.ancestors) if headline is not None else set()
    inside_article = False
    while True:
        children = [child for child in here.children if isinstance(child, Element) and child in measures]
        if not children:
            return here
        if not inside_article:
            chosen = _headlined_article(children, around_headline, measures)
            if chosen is not None:
                here, inside_article = chosen, True
                continue
        best = max(children, key=lambda child: _weight(measures[child]))
        total = sum(_weight(measures[child]) for child in children) + measures[here].own - measures[here].own_link
        if _weight(measures[best]) <= _DOMINATES * max(total, 1) or best.tag in _WHOLE:
            return here
        here, inside_article = best, inside_article or best.tag == "article"


def _headlined_article(children: list[Element], around_headline: set[Node], measures: Measures) -> Element | None:
    """Of several articles in a row, as pages without end have them, the one that the page's title names."""
    articles = [child for child in children if child.tag == "article" and measures[child].prose > 200]
    if len(articles) < 2:
        return None
    longest = max(measures[article].prose for article in articles)
    named = [article for article in articles if article in around_headline]
    return named[0] if named and measures[named[0]].prose > longest / 4 else None


def _frame(core: Element, body: Element, headline: Element | None, measures: Measures) -> Element:
    """The smallest element around the core that also holds the headline, or hardly more than the core."""
    frame = core
    if headline is not None:
        around = set(headline.ancestors)
        while frame != body and frame not in around:
            frame = _above(frame, measures)
        return frame
    limit = 1.35 * measures[core].prose
    while frame != body and _above(frame, measures) != body and measures[_above(frame, measures)].prose <= limit:
        frame = _above(frame, measures)
    return frame


def _above(element: Element, measures: Measures) -> Element:
    up = measures[element].up
    return element if up is None else up

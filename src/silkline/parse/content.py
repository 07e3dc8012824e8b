"""The content of a page as Markdown, text or HTML: the main content, or all visible content.

Works on a document whose facts were already read, because it changes the document.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from turbohtml import Document, Element

from silkline.model.page import Extraction, Wanted
from silkline.parse.footnotes import find_footnotes, tidy_footnotes
from silkline.parse.formulas import put_back, take_out, tidy_formulas
from silkline.parse.images import tidy_linked_images
from silkline.parse.kept_notes import keep_notes
from silkline.parse.main_content import choose, remove_rest
from silkline.parse.markdown import Style, to_html, to_markdown, to_text
from silkline.parse.metadata import Told, tell
from silkline.parse.product import Product, fill_in
from silkline.parse.quotations import drop_quotations

try:
    from silkline.parse.fast_word_count import count_words
except ImportError:  # not compiled
    from silkline.parse.word_count import count_words

# fmt: off
_UNSEEN: Final = (
    "head", "script", "style", "template", "iframe", "svg", "canvas", "object", "embed", "audio", "video", "map",
    "select", "datalist", "textarea", "input", "dialog",
)
# fmt: on
_VISITED: Final = (*_UNSEEN, "noscript", "math", "body")
_ENABLE_SCRIPTS: Final = 200
_NOTHING: Final[Mapping[str, str | None]] = {}


class Content(NamedTuple):
    """Markdown, text or HTML, as wanted, how it was chosen, and whether it was cut."""

    markdown: str = ""
    text: str = ""
    html: str = ""
    extraction: Extraction | None = None
    truncated: bool = False


NOTHING: Final = Content()


class Known(NamedTuple):
    """What was found in the page before its content is chosen."""

    article: str = ""
    """The text of the article from the metadata of the page, if it has one."""
    product: Product | None = None
    told: Told | None = None
    """What the metadata says, if the page itself says hardly anything."""
    notes: bool = False
    """Whether there may be footnotes."""
    formulas: bool = False
    """Whether there are formulas that are not MathML."""
    resolved: Mapping[str, str | None] = _NOTHING
    """The canonical URLs of links."""
    size: int = 0
    """The length of the text of the page without its scripts."""


def render(
    document: Document,
    base: str,
    wanted: Wanted,
    known: Known,
) -> Content:
    """The content that `wanted` asks for."""
    if wanted.content == "full":
        document.remove("button, [hidden]")
    body, has_mathml, removed = _drop_unseen(document)
    if body is None:
        return Content()
    formulas: list[str] = []
    taken = []
    size = known.size - removed
    if known.formulas or has_mathml:  # before the choice: the parts of a formula are no blocks
        if wanted.content == "html":
            taken = take_out(body)
        else:
            tidy_formulas(body, formulas, marked=wanted.content != "text")
        size = len(body.text)
    visible = size
    rule, confidence, kept = "full", 1.0, 1.0
    if wanted.keep or wanted.drop:
        visible = len(body.text)
        _choose_by_hand(body, wanted)
        size = len(body.text)
        kept = size / max(visible, 1)
    footnotes = None
    if wanted.keep or wanted.content == "full":
        rule = "keep" if wanted.keep else "full"
        footnotes = find_footnotes(body) if known.notes else None
    else:
        choice = choose(body, base, size)
        footnotes = keep_notes(choice, body) if known.notes else None
        remove_rest(choice)
        drop_quotations(choice)
        if wanted.content != "text":
            tidy_linked_images(body)
        rule, confidence, kept = choice.rule, choice.confidence, kept * choice.share
    words = count_words(body.stripped_strings)
    put_back(taken)
    if known.product is not None and rule not in ("full", "keep"):
        fill_in(body, known.product)
    if known.told is not None and rule not in ("full", "keep"):
        tell(body, known.told)
        rule, confidence = "metadata", known.told.confidence
        words = count_words(body.stripped_strings)
    if footnotes is not None and wanted.content in ("markdown", "full"):
        tidy_footnotes(footnotes)
    result = _written(body, base, wanted, known, formulas)
    article = known.article
    by_hand = rule == "keep"  # what the user names is what the user gets
    if article and not by_hand and wanted.content in ("markdown", "text") and len(result) < len(article) / 2:
        result, rule, confidence = article, "metadata", 0.5
        words, kept = len(article.split()), min(len(article) / max(visible, 1), 1.0)
    extraction = Extraction(round(kept, 3), words, rule, round(confidence, 2))
    return _cut(result, wanted, extraction)


def _written(body: Element, base: str, wanted: Wanted, known: Known, formulas: list[str]) -> str:
    if wanted.content == "text":
        return to_text(body)
    # The full page keeps what its author wrote. Elsewhere, titles of links and images seldom say anything new.
    whole = wanted.content == "full"
    style = Style(wanted.links_in_text, wanted.images, titles=wanted.link_titles or whole, repetitions=whole)
    if wanted.content == "html":
        return to_html(body, base, known.resolved, style)
    return to_markdown(body, base, known.resolved, style, formulas)


def _choose_by_hand(body: Element, wanted: Wanted) -> None:
    """Removes what the user drops, and all but what the user keeps."""
    for selector in wanted.drop:
        body.remove(selector)
    if not wanted.keep:
        return
    kept = body.select(", ".join(wanted.keep))
    outermost: list[Element] = []
    inside: set[Element] = set()
    for element in kept:  # in document order: an outer element comes before those in it
        if element not in inside:
            outermost.append(element)
            inside.update(element.iter_elements())
    for element in outermost:
        element.extract()
    body.clear()
    body.extend(outermost)


def _cut(result: str, wanted: Wanted, extraction: Extraction) -> Content:
    kept = result[: wanted.max_content]
    truncated = len(kept) < len(result)
    name = wanted.content if wanted.content in ("text", "html") else "markdown"
    return Content(**{name: kept}, extraction=extraction, truncated=truncated)


def _drop_unseen(document: Document) -> tuple[Element | None, bool, int]:
    """Removes what is not text, in one walk. Returns the body, whether there are formulas in MathML, and the length of
    the text that was removed.

    A short `<noscript>` only asks for scripts or repeats an image. A long one may be the page.
    """
    body, has_mathml, removed = None, False, 0
    for element in reversed(list(document.iter_elements(_VISITED))):  # inner ones first, so no text is counted twice
        tag = element.tag
        if tag == "body":
            body = element
        elif tag == "math":
            has_mathml = True
        else:
            text = element.text
            if tag != "noscript" or len(text.strip()) < _ENABLE_SCRIPTS:
                removed += len(text)
                element.extract()
    return body, has_mathml, removed

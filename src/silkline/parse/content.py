"""The content of a page as Markdown or text: the main content, or all visible content.

Works on a document whose facts were already read, because it changes the document.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from turbohtml import Document

from silkline.model.page import Wanted
from silkline.parse.article import JUNK, find
from silkline.parse.markdown import to_markdown, to_text
from silkline.parse.trim import trim

_INVISIBLE: Final = (
    "head,script,style,template,iframe,svg,canvas,object,embed,audio,video,map,button,select,textarea,input,"
    "dialog,[hidden]"
)
_ENABLE_SCRIPTS: Final = 200
_NOTHING: Final[Mapping[str, str | None]] = {}


class Content(NamedTuple):
    """Either Markdown or text, as wanted, and whether it was cut."""

    markdown: str = ""
    text: str = ""
    truncated: bool = False


NOTHING: Final = Content()


def render(
    document: Document, base: str, wanted: Wanted, article_body: str = "", resolved: Mapping[str, str | None] = _NOTHING
) -> Content:
    """The content that `wanted` asks for.

    `article_body` is the article from the metadata of the page, if it has one. `resolved` has the canonical URLs of the
    links that are already known.
    """
    _drop_pleas_for_scripts(document)
    if wanted.content == "full":
        return _cut(to_markdown(document.remove(_INVISIBLE), base, resolved), wanted, plain=False)
    found = find(document.remove(JUNK))
    result = ""
    plain = wanted.content == "text"
    if found is not None:
        trim(found)
        result = to_text(found.frame) if plain else to_markdown(found.frame, base, resolved)
    if len(result) < len(article_body) / 2:
        result = article_body
    return _cut(result, wanted, plain)


def _cut(result: str, wanted: Wanted, plain: bool) -> Content:
    kept = result[: wanted.max_content]
    truncated = len(kept) < len(result)
    return Content(text=kept, truncated=truncated) if plain else Content(markdown=kept, truncated=truncated)


def _drop_pleas_for_scripts(document: Document) -> None:
    """Removes short `<noscript>` elements: they only ask for scripts or repeat an image. A long one may be the page."""
    for element in document.find_all("noscript"):
        if len(element.text.strip()) < _ENABLE_SCRIPTS:
            element.extract()

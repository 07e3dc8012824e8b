"""Markdown of a part of a document: absolute links, tables as tables, code with its language, images with their alt.

turbohtml writes the Markdown; what it would have to write as raw HTML (cells that span, bold without a space around it)
is brought into a shape before or after that Markdown can express.
"""

import re
from collections.abc import Iterable
from typing import Final

from turbohtml import Document, Element, Markdown, PlainText

from silkline.model.url import canonical_links
from silkline.parse.tables import tidy_tables

_OPTIONS: Final = Markdown(tables=Markdown.Tables(cell_blocks="text"))
_PLAIN: Final = PlainText()
_KEPT_SCHEMES: Final = ("mailto:", "tel:")
_PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗"})
_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "data-lazy", "data-srcset", "srcset")
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush|code|syntax|sourcecode)[-:]\s*([a-z][\w+#.-]{0,20})",
    re.IGNORECASE,
)
_NO_LANGUAGE: Final = frozenset(
    {"block", "default", "none", "plain", "plaintext", "text", "toolbar", "wrapper", "box", "container"}
)
_LINE_NUMBERS: Final = (
    "td.linenos, td.gutter, td.rouge-gutter, td.lineno, span.lineno, span.linenos, .line-numbers-rows"
)
_PLAIN_FRAGMENT: Final = re.compile(r"[\w\-.~!$&'*+,;=:@/?%]*", re.ASCII)
# Code first, so that what looks like markup in it stays as it is.
_RAW: Final = re.compile(
    r"(?P<fence>`+)(?!`).*?(?<!`)(?P=fence)(?!`)|(?<!\\)(?:</?(?P<tag>strong|em|del)>|(?P<space>&#160;))", re.DOTALL
)
_SIGNS: Final = {"strong": "**", "em": "*", "del": "~~"}
_INVISIBLE: Final = ("\u00ad", "\u200b", "\u2060", "\ufeff", "\x00")


def to_markdown(root: Element | Document, base: str) -> str:
    """The Markdown of `root`, with links against `base`. Changes the document."""
    _mend_images(root)
    _mend_links(root, base)
    _mend_code(root)
    tidy_tables(root)
    return _tidy(root.to_markdown(_OPTIONS))


def to_text(root: Element | Document) -> str:
    """The text of `root`, laid out in lines and paragraphs."""
    return _visible(root.to_text(_PLAIN)).strip()


def _mend_images(root: Element | Document) -> None:
    """Gives images that load late their address, and removes those that have none or show nothing."""
    for image in root.find_all("img"):
        source = image.attr("src") or ""
        if not source or source.startswith("data:"):
            late = next((value for name in _LAZY if (value := image.attr(name))), "")
            source = late.strip().partition(",")[0].partition(" ")[0]
            image.attrs["src"] = source
        if (
            not source
            or source.startswith("data:")
            or image.attr("width") in ("0", "1")
            or image.attr("height") in ("0", "1")
        ):
            image.extract()


def _mend_links(root: Element | Document, base: str) -> None:
    """Makes links and image addresses absolute; what leads nowhere becomes plain text, and permalinks go."""
    anchors = []
    for anchor in root.find_all("a"):
        if anchor.find("img") is None and anchor.text.strip() in _PERMALINKS:
            anchor.extract()
        elif anchor.attr("href") is not None:
            anchors.append(anchor)
    _make_absolute(anchors, "href", base)
    _make_absolute(root.find_all("img"), "src", base)


def _make_absolute(elements: Iterable[Element], attribute: str, base: str) -> None:
    elements = list(elements)
    addresses = [element.attr(attribute) or "" for element in elements]
    for element, address, url in zip(elements, addresses, canonical_links(base, addresses), strict=True):
        if url is not None:
            fragment = address.partition("#")[2]
            plain = fragment and _PLAIN_FRAGMENT.fullmatch(fragment)
            element.attrs[attribute] = f"{url}#{fragment}" if plain else url
        elif attribute == "src":
            element.extract()
        elif not address.lower().startswith(_KEPT_SCHEMES):
            element.unwrap()


def _mend_code(root: Element | Document) -> None:
    """Tells each code block its language in the one way that the renderer reads."""
    blocks = root.find_all("pre")
    if not blocks:
        return
    root.remove(_LINE_NUMBERS)
    for block in blocks:
        code = block.find("code")
        language = _language(block, code)
        if not language:
            continue
        if code is None:
            code = block.wrap_children(Element("code"))
        code.attrs["class"] = f"language-{language}"


def _language(block: Element, code: Element | None) -> str:
    near = [code, block, block.parent, block.parent.parent if block.parent is not None else None]
    for element in near:
        if not isinstance(element, Element):
            continue
        given = element.attr("data-lang") or element.attr("data-language")
        if element is block:
            given = given or element.attr("lang")
        if given and len(given) <= 20:
            return given.lower()
        for found in _LANGUAGE.finditer(element.attr("class") or ""):
            if found[1].lower() not in _NO_LANGUAGE:
                return found[1].lower()
    return ""


def _tidy(markdown: str) -> str:
    if "<" in markdown or "&#160;" in markdown:
        markdown = _RAW.sub(_as_markdown, markdown)
    return _visible(markdown).strip()


def _as_markdown(found: re.Match[str]) -> str:
    if found["tag"]:
        return _SIGNS[found["tag"]]
    return " " if found["space"] else found[0]


def _visible(text: str) -> str:
    """The text with plain spaces, and without characters that nobody sees."""
    text = text.replace("\u00a0", " ")
    for sign in _INVISIBLE:
        text = text.replace(sign, "")
    return text

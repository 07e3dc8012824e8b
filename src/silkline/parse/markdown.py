"""Markdown of a part of a document: absolute links, tables as tables, code with its language, images with their alt.

turbohtml writes the Markdown. Some parts it can write only as raw HTML (cells that span, bold without a space around
it), and some it does not know (definition lists, footnotes, formulas). They are changed, before or after, to a form
that Markdown has.
"""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from turbohtml import Document, Element, Markdown, Node, PlainText, Text

from silkline.model.url import canonical
from silkline.parse.code_blocks import tidy_code
from silkline.parse.definition_lists import tidy_definition_lists
from silkline.parse.formulas import show_tex_scripts, tidy_formula_images, tidy_formulas
from silkline.parse.markdown_marks import written
from silkline.parse.tables import bound_tables, tidy_tables

_OPTIONS: Final = Markdown(tables=Markdown.Tables(cell_blocks="text"))
_PLAIN: Final = PlainText()
_KEPT_SCHEMES: Final = ("mailto:", "tel:")
_PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗"})
_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "data-lazy", "data-srcset", "srcset")
_PICTURES: Final = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg")
_MANY_BREAKS: Final = 2_000
_NEAR: Final = 10  # on a page with many line breaks, there must be text in this many nodes after each
# Characters of all URLs of a page: each relative link repeats the URL of the page. Links above it become plain text.
_MAX_ADDRESSES: Final = 4_000_000
_PLAIN_FRAGMENT: Final = re.compile(r"[\w\-.~!$&'*+,;=:@/?%]*", re.ASCII)
# Every branch starts with a different character, which makes the search faster.
_RAW: Final = re.compile(r"\\.|(?P<ticks>`++)|</?(?P<tag>strong|em|del)>|&#160;", re.DOTALL)
_TICKS: Final = re.compile("`++")
_SIGNS: Final = {"strong": "**", "em": "*", "del": "~~"}
_ENDS: Final = ("</strong>", "</em>", "</del>")
_DELIMITERS: Final = (r"\\(", r"\\\[")
_INVISIBLE: Final = ("\u00ad", "\u200b", "\u2060", "\ufeff", "\x00")


class Style(NamedTuple):
    """What Markdown and HTML keep besides the text."""

    links: bool = True
    images: bool = True
    link_titles: bool = False


_USUAL: Final = Style()


def to_markdown(
    root: Element | Document,
    base: str,
    resolved: Mapping[str, str | None],
    style: Style = _USUAL,
    formulas: list[str] | None = None,
) -> str:
    """The Markdown of `root`, with links relative to `base`; `resolved` has known ones. Changes the document.

    `formulas` are those that already have marks in the document.
    """
    formulas = [] if formulas is None else formulas
    tidy_formula_images(root, formulas)
    _mend(root, base, resolved, style)
    tidy_code(root)
    _mend_breaks(root)
    tidy_tables(root)
    tidy_definition_lists(root)
    result = root.to_markdown(_OPTIONS)
    # Formulas that a script would show; few pages have them.
    if "\\" in result and any(sign in result for sign in _DELIMITERS):
        number = len(formulas)
        tidy_formulas(root, formulas)
        result = root.to_markdown(_OPTIONS) if len(formulas) > number else result
    return _tidy(result, formulas)


def to_html(root: Element | Document, base: str, resolved: Mapping[str, str | None], style: Style = _USUAL) -> str:
    """The HTML of the content of `root`, with absolute links. Changes the document."""
    show_tex_scripts(root)
    _mend(root, base, resolved, style)
    return root.inner_html.strip()


def drop_linked_images(root: Element | Document) -> None:
    """Removes images that link to other pages: previews and advertisements. A link to the larger image is kept."""
    for anchor in root.find_all("a"):
        images = anchor.find_all("img")
        if images:
            path = (anchor.attr("href") or "#").partition("?")[0].lower()
            if not path.startswith("#") and not path.endswith(_PICTURES):
                for image in images:
                    image.extract()


def _mend(root: Element | Document, base: str, resolved: Mapping[str, str | None], style: Style) -> None:
    if style.images:
        _mend_images(root)
    else:
        root.remove("img, picture")
    _mend_links(root, base, resolved)
    if not style.links:
        root.strip_tags("a")
    elif not style.link_titles:
        for anchor in root.select("a[title]"):
            del anchor.attrs["title"]


def to_text(root: Element | Document) -> str:
    """The text of `root`, in lines and paragraphs. Changes the document."""
    bound_tables(root)
    return _visible(root.to_text(_PLAIN)).strip()


def _mend_images(root: Element | Document) -> None:
    """Sets the URL of images that load lazily, and removes images without a URL or of one pixel."""
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


def _mend_links(root: Element | Document, base: str, resolved: Mapping[str, str | None]) -> None:
    """Makes the URLs of links and images absolute. Invalid links become plain text, and permalinks are removed."""
    left = _MAX_ADDRESSES
    for anchor in root.find_all("a"):
        if anchor.text.strip() in _PERMALINKS and anchor.find("img") is None:
            anchor.extract()
            continue
        address = anchor.attr("href")
        if address is None:
            continue
        if left < 0:
            anchor.unwrap()
            continue
        url = resolved[address] if address in resolved else canonical(address, base=base)
        if url is not None:
            left -= len(url)
            fragment = address.partition("#")[2]
            plain = fragment and _PLAIN_FRAGMENT.fullmatch(fragment)
            target = f"{url}#{fragment}" if plain else url
            if target != address:
                anchor.attrs["href"] = target
        elif not address.lower().startswith(_KEPT_SCHEMES):
            anchor.unwrap()
    for image in root.find_all("img"):
        source = canonical(image.attr("src") or "", base=base) if left >= 0 else None
        if source is None:
            image.extract()
        else:
            left -= len(source)
            image.attrs["src"] = source


def _mend_breaks(root: Element | Document) -> None:
    """Shortens very long runs of line breaks, because turbohtml searches the next text from each line break."""
    breaks = root.find_all("br")
    if len(breaks) < _MANY_BREAKS:
        return
    for one in breaks:
        if not any(map(_is_content, islice(one.following, _NEAR))):
            one.extract()


def _is_content(node: Node) -> bool:
    return bool(node.text.strip()) if isinstance(node, Text) else isinstance(node, Element) and node.tag == "img"


def _tidy(markdown: str, formulas: list[str]) -> str:
    # The search for one character is thirty times as fast as the search for a word.
    has_tags = "<" in markdown and "</" in markdown and any(end in markdown for end in _ENDS)
    if has_tags or ("&" in markdown and "&#160;" in markdown):
        markdown = _without_raw(markdown)
    return written(_visible(markdown), formulas).strip()


def _without_raw(markdown: str) -> str:
    """Markdown for raw HTML, but not in code and escapes. Code ends at the next run of as many backticks."""
    ends: dict[int, list[int]] = {}  # of runs of backticks by their length, the last run first
    if "`" in markdown:
        for run in reversed(list(_TICKS.finditer(markdown))):
            ends.setdefault(len(run[0]), []).append(run.end())
    code_end = 0

    def put(found: re.Match[str]) -> str:
        nonlocal code_end
        if found.start() < code_end:
            return found[0]
        if found["ticks"]:
            possible = ends.get(len(found["ticks"]), [])
            while possible and possible[-1] <= found.end():
                possible.pop()
            code_end = possible[-1] if possible else 0
        elif found["tag"]:
            return _SIGNS[found["tag"]]
        return " " if found[0] == "&#160;" else found[0]

    return _RAW.sub(put, markdown)


def _visible(text: str) -> str:
    """The text with plain spaces, and without invisible characters."""
    if text.isascii():
        return text.replace("\x00", "")
    text = text.replace("\u00a0", " ")
    for sign in _INVISIBLE:
        text = text.replace(sign, "")
    return text

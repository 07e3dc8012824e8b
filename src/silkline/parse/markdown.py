"""Markdown of a part of a document: absolute links, tables as tables, code with its language, images with their alt.

turbohtml writes the Markdown. Some parts it can write only as raw HTML (cells that span, bold without a space around
it), and some it does not know (definition lists, footnotes, formulas). They are changed, before or after, to a form
that Markdown has.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from turbohtml import Document, Element, Markdown, Node, PlainText, Text

from silkline.model.url import canonical
from silkline.parse.code_blocks import tidy_code
from silkline.parse.definition_lists import tidy_definition_lists
from silkline.parse.formulas import show_tex_scripts, tidy_formula_images, tidy_formulas
from silkline.parse.images import drop_repetitions, find_sources
from silkline.parse.markdown_marks import written
from silkline.parse.stray_items import put_into_items
from silkline.parse.tables import bound_tables, tidy_tables

_OPTIONS: Final = Markdown(tables=Markdown.Tables(cell_blocks="text"))
_PLAIN: Final = PlainText()
_KEPT_SCHEMES: Final = ("mailto:", "tel:")
_PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗"})
_MANY_BREAKS: Final = 2_000
_NEAR: Final = 10  # on a page with many line breaks, there must be text in this many nodes after each
# Characters of all URLs of a page: each relative link repeats the URL of the page. Links above it become plain text.
_MAX_ADDRESSES: Final = 4_000_000
_PLAIN_FRAGMENT: Final = re.compile(r"[\w\-.~!$&'*+,;=:@/?%]*", re.ASCII)
_TICKS: Final = re.compile("`++")
_RAW_TAG: Final = re.compile(r"</?(?:strong|em|del)>")
_RAW_SPACE: Final = "&#160;"
_SIGNS: Final = (("strong", "**"), ("em", "*"), ("del", "~~"))
_RAW_ENDS: Final = tuple((f"{end}{tag}>", sign) for tag, sign in _SIGNS for end in ("", "/"))
"""What follows the `<` of a raw tag."""
_RAW_STARTS: Final = frozenset(raw[0] for raw, _ in _RAW_ENDS)
_DELIMITERS: Final = (r"\\(", r"\\\[")
_INVISIBLE: Final = ("\u00ad", "\u200b", "\u2060", "\ufeff", "\x00")


class Style(NamedTuple):
    """What Markdown and HTML keep besides the text."""

    links: bool = True
    images: bool = True
    titles: bool = False
    repetitions: bool = False
    """Whether images that are shown again, and alternative texts that repeat another text, are kept."""


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
    if style.images and not style.repetitions:
        drop_repetitions(root)
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


def _mend(root: Element | Document, base: str, resolved: Mapping[str, str | None], style: Style) -> None:
    if style.images:
        find_sources(root)
    else:
        root.remove("img, picture")
    _mend_links(root, base, resolved, style)
    if not style.links:
        root.strip_tags("a")


def to_text(root: Element | Document) -> str:
    """The text of `root`, in lines and paragraphs. Changes the document."""
    bound_tables(root)
    put_into_items(root)
    return _visible(root.to_text(_PLAIN)).strip()


def _mend_links(root: Element | Document, base: str, resolved: Mapping[str, str | None], style: Style) -> None:
    """Makes the URLs of links and images absolute. Invalid links become plain text, and permalinks are removed."""
    left = _MAX_ADDRESSES
    for anchor in root.find_all("a"):
        if anchor.text.strip() in _PERMALINKS and anchor.find("img") is None:
            anchor.extract()
            continue
        if not style.titles and "title" in anchor.attrs:
            del anchor.attrs["title"]
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
            if not style.titles and "title" in image.attrs:
                del image.attrs["title"]


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
    has_tags = "<" in markdown and _RAW_TAG.search(markdown) is not None
    has_spaces = "&" in markdown and _RAW_SPACE in markdown
    if has_tags or has_spaces or ("\\" in markdown and r"\_" in markdown):
        markdown = _without_raw(markdown)
    return written(_visible(markdown), formulas).strip()


def _without_raw(markdown: str) -> str:
    """Markdown for raw HTML, but not in code and escapes."""
    if "`" not in markdown:
        return _plain(markdown)
    parts: list[str] = []
    at = 0
    for start, end in _code_spans(markdown):
        parts += [_plain(markdown[at:start]), markdown[start:end]]
        at = end
    return "".join([*parts, _plain(markdown[at:])])


def _code_spans(markdown: str) -> Iterator[tuple[int, int]]:
    """Start and end of each code span. It ends at the next run of as many backticks as it starts with."""
    runs = [run.span() for run in _TICKS.finditer(markdown)]
    ends: dict[int, list[int]] = {}  # of runs by their length, the last run first
    for start, end in reversed(runs):
        ends.setdefault(end - start, []).append(end)
    code_end = 0
    for start, end in runs:
        if start < code_end:
            continue
        first = start + _is_escaped(markdown, start)
        possible = ends.get(end - first, [])
        while possible and possible[-1] <= end:
            possible.pop()
        if first < end and possible:
            code_end = possible[-1]
            yield first, code_end


def _plain(markdown: str) -> str:
    """The same for a part without code."""
    if "&" in markdown:
        markdown = _with(markdown, _RAW_SPACE, " ")
    if "<" in markdown and _RAW_TAG.search(markdown) is not None:
        markdown = _without_tags(markdown)
    return _with_plain_underscores(markdown) if "\\" in markdown and r"\_" in markdown else markdown


def _without_tags(markdown: str) -> str:
    """The Markdown with signs for raw tags. Split once: a search for each of the six tags takes three times as long."""
    before, *rest = markdown.split("<")
    parts = [before]
    for part in rest:
        if part[:1] in _RAW_STARTS:
            for raw, sign in _RAW_ENDS:
                if part.startswith(raw) and not _is_escaped(before, len(before)):
                    parts += [sign, part[len(raw) :]]
                    break
            else:
                parts += ["<", part]
        else:
            parts += ["<", part]
        before = part
    return "".join(parts)


def _with(markdown: str, raw: str, plain: str) -> str:
    """The Markdown with the plain form of a raw tag or a raw space, unless a backslash makes it text."""
    if raw not in markdown:
        return markdown
    if "\\" + raw[0] not in markdown:
        return markdown.replace(raw, plain)
    before, *rest = markdown.split(raw)
    parts = [before]
    for part in rest:
        parts += [raw if _is_escaped(before, len(before)) else plain, part]
        before = part
    return "".join(parts)


def _is_escaped(markdown: str, at: int) -> bool:
    """Whether an odd number of backslashes is before this place."""
    start = at
    while start and markdown[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1


def _with_plain_underscores(markdown: str) -> str:
    """No backslash before underscores inside a word: they never start or end emphasis, as in `snake_case`."""
    parts = markdown.split(r"\_")
    joined = [parts[0]]
    count = 0
    for part in parts[1:]:
        count += 1
        if part:
            inside = joined[-1][-1:].isalnum() and part[0].isalnum()
            joined += [("_" if inside else r"\_") * count, part]
            count = 0
    return "".join([*joined, r"\_" * count])


def _visible(text: str) -> str:
    """The text with plain spaces, and without invisible characters."""
    # The search for a sign is twenty times as fast as its removal, which counts it first.
    if text.isascii():
        return text.replace("\x00", "") if "\x00" in text else text
    text = text.replace("\u00a0", " ")
    for sign in _INVISIBLE:
        if sign in text:
            text = text.replace(sign, "")
    return text

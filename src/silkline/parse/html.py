"""Parses an HTML page once and returns all its facts. Uses no network and no database, and keeps nothing.

The limits in `Wanted` bound time and memory for every input. `Page.truncated` names the parts that were cut.
"""

import gc
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from turbohtml import Document, Element, parse

from silkline.model.page import Link, Page, Wanted
from silkline.model.url import canonical
from silkline.parse import content
from silkline.parse.bomb_guard import guarded
from silkline.parse.charsets import decoded_as, encoding_of, is_utf8, marked_encoding
from silkline.parse.directives import robots
from silkline.parse.fingerprint import content_hash, simhash
from silkline.parse.formulas import fill_tex, keep_tex_scripts
from silkline.parse.json_ld import json_ld_holding, json_ld_of, storable
from silkline.parse.metadata import Told, told_by
from silkline.parse.page_facts import Harvest, label
from silkline.parse.product import product_of
from silkline.parse.scripted import needs_scripts
from silkline.parse.sniff import utf16_without_mark

Inspect = Callable[[Document, str, str], None]
"""Gets the document, the title of the page and the base of its links."""
LINKS_ONLY: Final = Wanted()
_ESCAPE: Final = re.compile(rb"\x1b[($]")
_ISO_2022_JP: Final = re.compile(rb"iso-?2022-?jp", re.IGNORECASE)
_META_WITHIN: Final = 1024
_HARDLY_ANY: Final = 50
"""Words: a page with more of them says enough itself."""
_SCRIPTS: Final = ("script", "style")
_OPENGRAPH: Final = ("og:", "twitter:", "article:")


def parse_page(
    body: bytes,
    url: str,
    wanted: Wanted = LINKS_ONLY,
    *,
    charset: str | None = None,
    robots_tags: Sequence[str] = (),
    inspect: Inspect | None = None,
) -> Page:
    """The facts of the page that came from `url`, a canonical URL.

    `charset` is the charset of the Content-Type, `robots_tags` are the values of the X-Robots-Tag headers. `inspect`
    gets the document before anything is removed from it.
    """
    if inspect is not None:  # runs code of users, which may leave garbage
        return _parsed(body, url, wanted, charset, robots_tags, inspect)
    # The garbage collector would look at the thousands of nodes again and again. They have no reference cycles, so they
    # are freed without it, and their number is limited as the body is.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _parsed(body, url, wanted, charset, robots_tags, None)
    finally:
        if collecting:
            gc.enable()


def _parsed(
    body: bytes,
    url: str,
    wanted: Wanted,
    charset: str | None,
    robots_tags: Sequence[str],
    inspect: Inspect | None,
) -> Page:
    body, encoding, original = _searchable(body, charset)
    kept, safe = guarded(body, wanted.max_body)
    document = parse(safe, encoding=encoding, positions=False) if encoding else parse(safe, positions=False)
    outlined = wanted.outline or wanted.facts
    noted = wanted.content != "none"
    harvest = Harvest(document, wanted.max_links, headings=outlined, words=wanted.facts, notes=noted)
    base = url
    if harvest.base_href:
        base = canonical(harvest.base_href, base=url) or url
    links = harvest.links(base, wanted.rules)
    refresh = _refresh(document, url, wanted) if harvest.refreshes else None
    if refresh is not None:
        links.append(Link(refresh[1], "refresh"))
    more = _outline(document, harvest) if outlined else {}
    if wanted.facts:
        more |= _facts(document, harvest, links)
    if inspect is not None:
        inspect(document, harvest.title, base)
    article, product = "", None
    # After `inspect` there may be others.
    scripts = list(document.iter_elements(_SCRIPTS)) if harvest.truncated or inspect is not None else harvest.scripts
    if wanted.content not in ("none", "full"):
        articles, products = json_ld_holding(scripts, '"articleBody"', '"Product')
        article, product = _article(articles), product_of(products)
    formulas = keep_tex_scripts(scripts) if wanted.content != "none" else []
    for script in scripts:
        script.extract()
    text = document.text
    rendered = content.NOTHING
    if wanted.content != "none":
        fill_tex(formulas)
        told = None if article or wanted.content == "full" else _told(harvest, text, scripts)
        known = content.Known(article, product, told, harvest.has_notes, bool(formulas), harvest.resolved(), len(text))
        rendered = content.render(document, base, wanted, known)
    return Page(
        url=url,
        base=base,
        charset=original or (document.encoding or "").lower(),
        title=harvest.title,
        links=links,
        robots=robots(harvest.metas, robots_tags, wanted.agent),
        canonical=next((link.url for link in links if link.kind == "canonical"), None),
        refresh=refresh,
        content_hash=content_hash(text),
        simhash=simhash(text) if wanted.simhash else None,
        markdown=rendered.markdown,
        text=rendered.text,
        html=rendered.html,
        extraction=rendered.extraction,
        needs_scripts=wanted.scripts and needs_scripts(text, kept),
        truncated=_names(
            body=kept is not body, formatting=safe is not kept, links=harvest.truncated, content=rendered.truncated
        ),
        **more,
    )


def _names(**cut: bool) -> tuple[str, ...]:
    return tuple(name for name, happened in cut.items() if happened)


def _searchable(body: bytes, charset: str | None) -> tuple[bytes, str | None, str]:
    """The body with its tags in ASCII, its encoding, and its original encoding if it was converted.

    The order is that of the WHATWG: byte-order mark, HTTP, meta tag, the bytes themselves, windows-1252. None leaves
    the last three to the parser. In two encodings a tag has other bytes than in ASCII: in UTF-16, and in ISO-2022-JP,
    where an escape sequence can be anywhere. `bomb_guard` would not find such tags, so these bodies are converted.
    """
    encoding = marked_encoding(body)
    if encoding is None:
        encoding = encoding_of(charset) if charset else utf16_without_mark(body)
    if encoding is None and b"\x1b" in body and _ESCAPE.search(body) and _ISO_2022_JP.search(body):
        # The parser searches its whole input for a meta tag, but the standard only the start of the body.
        encoding = encoding_of((parse(body[:_META_WITHIN], positions=False).encoding or "").lower())
        if encoding != "iso-2022-jp" and is_utf8(body):
            encoding = "utf-8"
    if encoding in ("utf-16le", "utf-16be", "iso-2022-jp"):
        return decoded_as(body, encoding).removeprefix("\ufeff").encode("utf-8", "replace"), "utf-8", encoding
    return body, encoding, ""


def _refresh(document: Document, url: str, wanted: Wanted) -> tuple[float, str] | None:
    """Seconds and target of a meta refresh to another page."""
    found = document.meta_refresh(url)
    target = canonical(found[1], wanted.rules) if found else None
    return (found[0], target) if found and target and target != url else None


def _outline(document: Document, harvest: Harvest) -> dict[str, Any]:
    root = document.root
    return {
        "description": harvest.meta("description") or harvest.meta("og:description"),
        "language": label(root.attr("lang") if root is not None else None, 35),
        "headings": harvest.headings,
        "anchors": harvest.anchors,
    }


def _facts(document: Document, harvest: Harvest, links: list[Link]) -> dict[str, Any]:
    """More facts, for an index."""
    return {
        "hreflang": [(link.text, link.url) for link in links if link.kind == "alternate" and link.text],
        "json_ld": json_ld_of(document),
        "opengraph": harvest.named(_OPENGRAPH),
    }


def _told(harvest: Harvest, text: str, scripts: list[Element]) -> Told | None:
    """What the metadata says of a page with hardly any text."""
    title = len(harvest.title.split())
    words = len(text.split(None, title + _HARDLY_ANY)) - title  # the title is a part of the text
    return told_by(harvest, json_ld_holding(scripts, "{")[0], words) if words < _HARDLY_ANY else None


def _article(blocks: list[Any]) -> str:
    """The text of the article from JSON-LD. On pages that scripts build, there is no other text."""
    longest, stack = "", list(blocks)
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            body = value.get("articleBody")
            if isinstance(body, str) and len(body) > len(longest):
                longest = body
            stack += [item for item in value.values() if isinstance(item, dict | list)]
    return storable(longest)

"""Proposes fields for a page: from its JSON-LD, its microdata, its meta tags, and from structure that is repeated.

The work is proportional to the page: elements are counted by their tag and classes in one walk.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from turbohtml import Document, Element
from turbohtml.query import escape_identifier

from silkline.parse.field_values import Problem, converted
from silkline.parse.structured import Structured, text_of, types_of

MOST: Final = 40
_FEWEST_ROWS: Final = 4
_MOST_ELEMENTS: Final = 20_000
_MOST_PARTS: Final = 12
_DEEPEST: Final = 3
_ITEMS: Final = frozenset(
    {
        *("Product", "Offer", "AggregateOffer", "Article", "NewsArticle", "BlogPosting", "Recipe", "Event"),
        *("JobPosting", "Book", "Movie", "Person", "Organization", "LocalBusiness", "Place", "AggregateRating"),
        *("VideoObject",),
    }
)
_PRICES: Final = ("price", "lowprice", "highprice")
_NOT_CONTENT: Final = frozenset({"script", "style", "option", "br", "path", "svg", "use", "tr", "td", "th", "wbr"})
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class Suggestion(NamedTuple):
    """A field in the form of a file, and the value that this page has."""

    name: str
    field: dict[str, Any]
    example: str


class Suggestions(NamedTuple):
    """`each` is the selector of rows; empty: the fields are of the whole page."""

    each: str
    rows: int
    fields: list[Suggestion]


def suggest(document: Document, base: str) -> list[Suggestions]:
    """The fields of the page as a whole, and those of its repeated elements, if there are any."""
    structured = Structured(document)
    page = [*_of_items("json_ld", structured.json_ld), *_of_items("microdata", structured.microdata)]
    page += _of_metas(structured)
    heading = document.select_one("h1")
    if heading is not None and heading.text.strip():
        page.insert(0, _suggestion("heading", {"css": "h1"}, " ".join(heading.text.split())))
    found = [Suggestions("", 0, _distinct(page))] if page else []
    rows = _repeated(document, base)
    return [*found, rows] if rows is not None else found


def _of_items(source: str, nodes: Any) -> Iterator[Suggestion]:
    """The properties of the items that people search for, down to a few levels."""
    stack: list[tuple[Any, str, int]] = [(node, "", 0) for node in reversed(nodes)]
    visited = 0
    while stack and visited < 2_000:
        value, path, depth = stack.pop()
        visited += 1
        if isinstance(value, list):
            stack += [(each, path, depth) for each in reversed(value[:20])]
            continue
        if not isinstance(value, dict):
            continue
        if "@graph" in value:
            stack.append((value["@graph"], "", 0))
        types = [each for each in types_of(value) if each in _ITEMS]
        if not path and not types:
            stack += [(each, "", 0) for each in reversed(value.values()) if isinstance(each, dict | list)]
            continue
        own = path or types[0]
        for name, inner in value.items():
            if name.startswith("@"):
                continue
            first = inner[0] if isinstance(inner, list) and inner else inner
            if isinstance(first, dict) and depth < _DEEPEST and "name" not in first:
                stack.append((first, f"{own}.{name}", depth + 1))
            elif text_of(first).strip():
                yield _typed(f"{own}.{name}", source, text_of(first))


def _of_metas(structured: Structured) -> Iterator[Suggestion]:
    for name, value in structured.opengraph.items():
        if name in ("og:title", "og:image", "og:description", "product:price:amount", "article:published_time"):
            yield _typed(name, "opengraph", value)
    for name, value in structured.metas:
        if name in ("description", "author", "keywords") and value.strip():
            yield _suggestion(name, {"meta": name}, value)


def _typed(path: str, source: str, example: str) -> Suggestion:
    """A field for a path, with the type that its name and its value show."""
    last = re.split(r"[.:]", path)[-1]
    name = "_".join(_WORD.findall(path.split(".", 1)[-1] if "." in path else path)).lower()
    kind = _type_of(last.lower(), example, path)
    return _suggestion(name, {source: path, **({"type": kind} if kind != "text" else {})}, example)


def _type_of(name: str, example: str, path: str) -> str:
    if name in _PRICES or path == "product:price:amount":
        return "price"
    for kind, words in (
        ("boolean", ("availability", "isaccessibleforfree")),
        ("date", ("date", "time", "until")),
        ("url", ("url", "image", "logo", "thumbnail", "link")),
        ("number", ("rating", "count", "value", "width", "height", "position")),
    ):
        if any(word in name for word in words):
            return kind if not isinstance(converted(example, kind, "https://example.com/"), Problem) else "text"
    return "text"


def _suggestion(name: str, field: dict[str, Any], example: str) -> Suggestion:
    return Suggestion(re.sub(r"\W", "_", name)[:60] or "field", field, " ".join(example.split())[:120])


def _distinct(found: list[Suggestion]) -> list[Suggestion]:
    """The first of each name."""
    return list({each.name: each for each in reversed(found)}.values())[::-1][:MOST]


# Repeated structure.


def _repeated(document: Document, base: str) -> Suggestions | None:
    """The elements of one kind with the most text, if there are several, and what they contain."""
    kinds: dict[tuple[str, str], list[Element]] = {}
    for number, element in enumerate(document.iter_elements()):
        if number > _MOST_ELEMENTS:
            break
        classes = (element.attr("class") or "").split()
        parent = element.parent
        if classes and element.tag not in _NOT_CONTENT and isinstance(parent, Element):
            kinds.setdefault((element.tag, classes[0]), []).append(element)
    best, most = None, 0
    for (tag, name), elements in kinds.items():
        if len(elements) < _FEWEST_ROWS:
            continue
        parts = _parts(elements)
        score = len(elements) * len(parts) if len(parts) > 1 else 0
        if score > most:
            best, most = (f"{tag}.{escape_identifier(name)}", elements, parts), score
    if best is None:
        return None
    selector, elements, parts = best
    return Suggestions(selector, len(elements), [_part(part, elements, base) for part in parts])


def _parts(elements: list[Element]) -> list[str]:
    """Selectors of what most of these elements contain."""
    seen: Counter[str] = Counter()
    for element in elements[:20]:
        inside = set()
        for number, child in enumerate(element.iter_elements()):
            if number > 60:
                break
            classes = (child.attr("class") or "").split()
            if child.tag in _NOT_CONTENT:
                continue
            if classes:
                inside.add(f"{child.tag}.{escape_identifier(classes[0])}")
            elif child.tag in ("a", "img", "time", "h2", "h3", "h4"):
                inside.add(child.tag)
        seen.update(inside)
    enough = 0.7 * min(len(elements), 20)
    return [part for part, number in seen.most_common(3 * _MOST_PARTS) if number >= enough][:_MOST_PARTS]


def _part(selector: str, elements: list[Element], base: str) -> Suggestion:
    tag, _, name = selector.partition(".")
    first = next((found for element in elements[:20] if (found := element.select_one(selector)) is not None), None)
    kind = {"a": "url", "img": "url", "time": "date"}.get(tag, "text") if not name or tag == "img" else "text"
    text = " ".join(first.text.split()) if first is not None else ""
    if kind == "url" and first is not None:
        text = converted(first.attr("src" if tag == "img" else "href") or "", "url", base)
        text = "" if isinstance(text, Problem) else text
    elif "price" in name.lower() and not isinstance(converted(text, "price", base), Problem):
        kind = "price"
    elif ("stock" in name.lower() or "avail" in name.lower()) and isinstance(converted(text, "boolean", base), bool):
        kind = "boolean"
    named = {"a": "link", "img": "image", "time": "date"}.get(tag, tag) if not name else name.replace("\\", "")
    field = {"css": selector, **({"type": kind} if kind != "text" else {})}
    return _suggestion("_".join(_WORD.findall(named)).lower(), field, text)

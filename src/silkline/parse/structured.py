"""The structured data of a page (JSON-LD, microdata, OpenGraph and meta tags), and paths into it.

Every part is read only when it is asked for. Time and memory are bounded: the size of JSON that is read and that is
written, the number of items, and the number of values that a path visits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple

from turbohtml import Document

from silkline.parse.json_ld import json_ld_of
from silkline.parse.json_size import JsonBudget, beginning
from silkline.parse.microdata import microdata_of

_MAX_METAS: Final = 500
_MAX_CONTENT: Final = 10_000
_MAX_DEPTH: Final = 64
_MAX_VISITED: Final = 20_000
_MAX_BYTES: Final = 8 << 20
_TEXTS: Final = ("@value", "name", "url", "@id")


class Found(NamedTuple):
    """A value in structured data, and the object that has it."""

    value: Any
    owner: dict[str, Any]


class Structured:
    """The structured data of one document. Use it before the scripts are removed from the document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @cached_property
    def json_ld(self) -> list[Any]:
        """Every JSON-LD block that is valid JSON."""
        return json_ld_of(self._document, deepest=_MAX_DEPTH)

    @cached_property
    def microdata(self) -> list[dict[str, Any]]:
        return microdata_of(self._document)

    @cached_property
    def metas(self) -> list[tuple[str, str]]:
        """Name and content of each meta tag, in the order of the page; the name in lower case."""
        found = []
        for element in self._document.find_all("meta", limit=_MAX_METAS):
            name = element.attr("property") or element.attr("name") or element.attr("itemprop")
            content = element.attr("content")
            if name and content is not None:
                found.append((name.strip().lower(), content[:_MAX_CONTENT].replace("\x00", "")))
        return found

    @property
    def opengraph(self) -> dict[str, str]:
        """The first of each tag of OpenGraph and of its relatives."""
        return {
            name: content
            for name, content in reversed(self.metas)
            if name.startswith(("og:", "twitter:", "article:", "product:"))
        }

    def everything(self) -> dict[str, Any]:
        """All parts, of a limited size as JSON. `truncated` is there only if something is missing."""
        budget = JsonBudget(_MAX_BYTES)
        found = {
            "json_ld": budget.fitting(self.json_ld),
            "microdata": budget.fitting(self.microdata),
            "opengraph": budget.fitting(self.opengraph),
            "meta": budget.fitting(dict(reversed(self.metas))),
        }
        return {**found, "truncated": True} if budget.is_exceeded else found

    def at(self, source: str, path: str) -> Iterator[Found]:
        """The values at a path, in the order of the page."""
        if source == "json_ld":
            yield from at_path(self.json_ld, path)
        elif source == "microdata":
            yield from at_path(self.microdata, path)
        else:
            yield from self._metas_at(path.strip().lower(), opengraph=source == "opengraph")

    def _metas_at(self, name: str, *, opengraph: bool) -> Iterator[Found]:
        names = {name, f"og:{name}"} if opengraph else {name}
        beside = {key: content for key, content in reversed(self.metas) if key.endswith("currency")}
        stem = name.removesuffix(":amount")
        for key, content in self.metas:
            if key in names and content.strip():
                code = beside.get(f"{stem}:currency") or beside.get(f"og:{stem}:currency")
                yield Found(content, {"priceCurrency": code} if code else {})


def at_path(nodes: Any, path: str) -> Iterator[Found]:
    """The values at a path such as `Product.offers.price`.

    A first name with a capital letter is a type: every item of this type is used, wherever it is. Lists on the way are
    opened.
    """
    first, *rest = [part.strip() for part in path.split(".")]
    budget = [_MAX_VISITED]
    if first[:1].isupper():
        start = [Found(item, {}) for item in _items(nodes, [_MAX_VISITED]) if _has_type(item, first)]
    else:
        rest = [first, *rest]
        start = [Found(item, {}) for item in _opened(nodes, budget)]
        start += [Found(item, {}) for top in start for item in _opened(_graph(top.value), budget)]
    found = start
    for name in rest:
        found = [
            Found(value, each.value)
            for each in found
            if isinstance(each.value, dict)
            for value in _opened(each.value.get(name), budget)
        ]
    yield from found


def text_of(value: Any) -> str:
    """A value of structured data as text. An object is shown by its name."""
    while isinstance(value, dict):
        inner = next((value[name] for name in _TEXTS if value.get(name) not in (None, "", [], {})), None)
        if inner is None:
            return beginning(value, _MAX_CONTENT)
        value = inner[0] if isinstance(inner, list) else inner
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return beginning(value, _MAX_CONTENT)
    return "" if value is None else str(value)


def types_of(item: dict[str, Any]) -> list[str]:
    """The types of an item without their vocabulary: `https://schema.org/Product` is `Product`."""
    types = item.get("@type")
    named = types if isinstance(types, list) else [types]
    return [each.rstrip("/").rpartition("/")[2].rpartition("#")[2] for each in named if isinstance(each, str)]


def _has_type(item: dict[str, Any], name: str) -> bool:
    return name in types_of(item)


def _graph(value: Any) -> Any:
    return value.get("@graph") if isinstance(value, dict) else None


def _opened(value: Any, budget: list[int]) -> list[Any]:
    """The value, or the values of a list, also of lists in lists."""
    found, stack = [], [value]
    while stack and budget[0] > 0:
        each = stack.pop()
        budget[0] -= 1
        if isinstance(each, list):
            stack += reversed(each)
        elif each is not None:
            found.append(each)
    return found


def _items(nodes: Any, budget: list[int]) -> Iterator[dict[str, Any]]:
    """Every object in nodes, also inside other objects, in the order of the page."""
    stack = [nodes]
    while stack and budget[0] > 0:
        each = stack.pop()
        budget[0] -= 1
        if isinstance(each, list):
            stack += reversed(each)
        elif isinstance(each, dict):
            yield each
            stack += [value for value in reversed(each.values()) if isinstance(value, dict | list)]

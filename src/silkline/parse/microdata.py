"""The microdata of a page as objects in the form of JSON-LD: `@type`, and a list of values for each property.

One walk over the elements, so the work is proportional to the page. turbohtml follows `itemref` recursively, and 2 KB
of items that refer to each other take minutes: here every element belongs to one item at most, and the number of items
and properties is limited.
"""

from __future__ import annotations

from typing import Any, Final

from turbohtml import Document, Element

_MAX_ITEMS: Final = 2_000
_MAX_PROPERTIES: Final = 20_000
_MAX_TEXT: Final = 10_000
_MAX_DEPTH: Final = 64
_MAX_NESTED: Final = 16
_ADDRESSES: Final = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
    "object": "data",
    "meta": "content",
    "meter": "value",
    "data": "value",
}


def microdata_of(document: Document) -> list[dict[str, Any]]:
    """The items of a page that are not the value of a property."""
    elements = document.select("[itemscope]")[:_MAX_ITEMS]
    if not elements:
        return []
    items = {element: _item(element) for element in elements}
    referred = _referred(document, elements)
    inner: set[Element] = set()
    left, length = _MAX_PROPERTIES, _MAX_PROPERTIES * 50
    for element in document.select("[itemprop]")[:_MAX_PROPERTIES]:
        owner = _owner(element, items, referred)
        if owner is None:
            continue
        own = items.get(element)
        value: Any = own if own is not None else _value(element)
        if own is not None:
            inner.add(element)
        for name in _names(element):
            left -= 1
            length -= len(name) + (len(value) if own is None else 0)
            items[owner].setdefault(name, []).append(value)
        if left < 0 or length < 0:
            break
    return _without_circles([items[element] for element in elements if element not in inner])


def _names(element: Element) -> list[str]:
    """The names of a property. Those that start with `@` belong to the form of JSON-LD, and no page may write them."""
    return [name for name in (element.attr("itemprop") or "").split()[:10] if not name.startswith("@")]


def _item(element: Element) -> dict[str, Any]:
    types = (element.attr("itemtype") or "").split()
    item: dict[str, Any] = {"@type": types[0] if len(types) == 1 else types} if types else {}
    if identity := element.attr("itemid"):
        item["@id"] = identity
    return item


def _referred(document: Document, elements: list[Element]) -> dict[Element, Element]:
    """The items that refer to an element elsewhere in the page with `itemref`, by that element."""
    owners: dict[str, Element] = {}
    for element in elements:
        for name in (element.attr("itemref") or "").split()[:100]:
            owners.setdefault(name, element)
    if not owners:
        return {}
    found = {}
    for element in document.select("[id]"):
        owner = owners.pop(element.attr("id") or "", None)
        if owner is not None:
            found[element] = owner
    return found


def _owner(element: Element, items: dict[Element, dict[str, Any]], referred: dict[Element, Element]) -> Element | None:
    """The item that has this property: the nearest around it, or one that refers to it."""
    if element in referred:
        return referred[element]
    node = element.parent
    for _ in range(_MAX_DEPTH):
        if not isinstance(node, Element):
            return None
        if node in items:
            return node
        if node in referred:
            return referred[node]
        node = node.parent
    return None


def _value(element: Element) -> str:
    tag = element.tag
    name = _ADDRESSES.get(tag)
    found = element.attr(name) if name else element.attr("datetime") if tag == "time" else element.attr("content")
    text = found if found is not None else " ".join(element.text[:_MAX_TEXT].split())
    return text[:_MAX_TEXT].replace("\x00", "")


def _without_circles(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove values that contain themselves, as items do that refer to each other, and values that are too deep."""
    seen = set(map(id, items))
    stack = [(item, 0) for item in items]
    while stack:
        item, depth = stack.pop()
        for name, values in item.items():
            if name.startswith("@"):
                continue
            kept = []
            for value in values:
                if isinstance(value, dict):
                    if id(value) in seen or depth == _MAX_NESTED:
                        continue
                    seen.add(id(value))
                    stack.append((value, depth + 1))
                kept.append(value)
            item[name] = kept
    return items

"""Puts what is in a list, but in no item of it, into items: plain text would lose it."""

from typing import Final

from turbohtml import Comment, Document, Element, Node

from silkline.parse.new_elements import NewElements

_LISTS: Final = ("ul", "ol", "menu")
_ITEMS: Final = frozenset({"li", *_LISTS})


def put_into_items(root: Element | Document) -> None:
    items = NewElements("<li></li>")
    for each in list(root.iter_elements(_LISTS)):
        first: Node | None = None
        last: Node | None = None
        for child in list(each.children):
            if isinstance(child, Element) and child.tag in _ITEMS:
                _wrap(items, first, last)
                first = last = None
            elif first is not None or _says_something(child):
                first, last = first or child, child
        _wrap(items, first, last)


def _wrap(items: NewElements, first: Node | None, last: Node | None) -> None:
    if first is not None:
        first.wrap_siblings(items.next(), until=last)


def _says_something(node: Node) -> bool:
    return not isinstance(node, Comment) and bool(node.text.strip())

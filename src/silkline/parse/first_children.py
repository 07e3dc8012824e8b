"""The first children of an element, without a list of all of them: a hostile page has one element with 100,000."""

from collections.abc import Iterator

from turbohtml import Document, Element, Node


def first_children(element: Element | Document, most: int) -> Iterator[Node]:
    """At most `most` children, in order."""
    child = next(iter(element.descendants), None)
    while child is not None and most > 0:
        yield child
        child, most = child.next_sibling, most - 1


def has_more_children(element: Element, than: int) -> bool:
    """Whether the element has more children than this."""
    return len(list(first_children(element, than + 1))) > than

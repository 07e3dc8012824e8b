"""What the metadata of a page says, for pages that have no text until their scripts have run.

The description in the meta tags is the start of the text or a summary of it. JSON-LD may have more: the text of a post
and its answers, the names of a list. It is less than the page shows, so its confidence is low, and a page with text of
its own is never replaced by it.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from turbohtml import Element, Text

from silkline.parse.page_facts import Harvest
from silkline.parse.product import is_shown, lines_of, words_of

_DESCRIPTIONS: Final = ("description", "og:description", "twitter:description")
_TITLES: Final = ("headline", "name")
_TEXTS: Final = ("articleBody", "text", "reviewBody", "description", "abstract")
# fmt: off
_INNER: Final = (
    "@graph", "mainEntity", "mainEntityOfPage", "acceptedAnswer", "suggestedAnswer", "comment", "itemListElement",
    "item", "hasPart",
)
# The site, its owner and its menus: they are the same on all its pages.
_NOT_THE_PAGE: Final = frozenset({
    "BreadcrumbList", "Brand", "Corporation", "EntryPoint", "ImageObject", "LocalBusiness", "Organization", "Person",
    "SearchAction", "SiteNavigationElement", "WebSite",
})
# fmt: on
_MAX_VISITED: Final = 500
_MAX_CHARACTERS: Final = 100_000
_MAX_LINES: Final = 1_000
_SUMMARY, _TEXT = 0.1, 0.2
_SHORT: Final = 40
"""Words: with more, JSON-LD says more than a summary."""
_TIMES: Final = 4
"""Metadata that says less than so many times the words that the page shows is left out."""


class Told(NamedTuple):
    """What the metadata says."""

    title: str
    lines: list[tuple[str, str]]
    """A tag and a text each."""
    confidence: float


def told_by(harvest: Harvest, blocks: list[Any], shown: int) -> Told | None:
    """What meta tags and JSON-LD (`blocks`) say about a page that shows so many words. None if it is not much more."""
    lines: list[tuple[str, str]] = []
    said: set[str] = set()
    left = _MAX_CHARACTERS
    for tag, text in _texts(blocks):
        left -= len(text)
        if left < 0 or len(lines) == _MAX_LINES:
            break
        if text not in said:
            said.add(text)
            lines.append((tag, text))
    words = words_of(" ".join([text for _, text in lines]))
    confidence = _TEXT if len(words) > _SHORT else _SUMMARY
    description = max([harvest.meta(name) for name in _DESCRIPTIONS], key=len)
    if description and not is_shown(description, set(words)):
        lines.insert(0, ("p", description))
        words += words_of(description)
    if len(words) <= _TIMES * shown:
        return None
    return Told(harvest.meta("og:title") or harvest.title, lines, confidence)


def tell(body: Element, told: Told) -> None:
    """Puts what the metadata says before the little that the page has."""
    first = [("h1", told.title)] if told.title and told.lines[0] != ("h2", told.title) else []
    for at, (tag, text) in enumerate([*first, *told.lines]):
        block = Element(tag)
        block.append(Text(text))
        body.insert(at, block)


def _texts(blocks: list[Any]) -> Iterator[tuple[str, str]]:
    """Titles and lines of text in the order of the JSON-LD, with a tag for each."""
    stack = list(reversed(blocks))
    for _ in range(_MAX_VISITED):
        if not stack:
            return
        value = stack.pop()
        if isinstance(value, list):
            stack += reversed(value[:_MAX_VISITED])
        elif isinstance(value, dict) and not _is_around(value):
            yield from _own_texts(value)
            stack += [value[key] for key in reversed(_INNER) if key in value]


def _own_texts(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    title = next((line for key in _TITLES for line in lines_of(value.get(key)).split("\n") if line), "")
    text = next((found for key in _TEXTS if (found := lines_of(value.get(key)))), "")
    if title:
        yield ("h2" if text else "p"), title
    for line in text.split("\n"):
        if line:
            yield "p", line


def _is_around(value: dict[str, Any]) -> bool:
    kinds = value.get("@type")
    return any(
        kind in _NOT_THE_PAGE for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)
    )

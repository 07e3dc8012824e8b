"""The product of a page, from its JSON-LD, where the page itself shows less: name, price and description.

Shops show the description in a tab that a script opens, or the price in an element that looks like a form. The same
values are in the JSON-LD that search engines read. Only what the content does not have is added to it.
"""

import re
from typing import Any, Final, NamedTuple

from turbohtml import Element, Text, parse

from silkline.parse.bomb_guard import defused
from silkline.parse.json_ld import storable
from silkline.parse.markdown import to_text

_TYPES: Final = frozenset({"Product", "ProductGroup", "IndividualProduct", "ProductModel"})
_MAX_NAME: Final = 500
_MAX_DESCRIPTION: Final = 20_000
_MAX_VISITED: Final = 500
_MOST: Final = 0.6
"""If the content has this share of the words of a name or a description, it shows it."""
_WORD: Final = re.compile(r"\w+")
_DIGITS: Final = re.compile(r"\d+")


class Product(NamedTuple):
    """What the JSON-LD of a page says about its product. Empty texts are not known."""

    name: str
    price: str
    description: str


def product_of(blocks: list[Any]) -> Product | None:
    """The product that the page is about. None if it has none, or several: then it is a list of products."""
    found: list[dict[str, Any]] = []
    stack: list[Any] = list(blocks)
    for _ in range(_MAX_VISITED):
        if not stack:
            break
        value = stack.pop()
        if isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            if _is_product(value):
                found.append(value)
            else:
                stack += [value[key] for key in ("@graph", "mainEntity") if key in value]
    if len(found) != 1:
        return None
    product = found[0]
    offers = product.get("offers")
    return Product(_text(product.get("name"), _MAX_NAME), _price(offers), lines_of(product.get("description")))


def fill_in(body: Element, product: Product) -> None:
    """Adds what the content of a page does not show."""
    text = " ".join(body.strings)
    shown, numbers = set(words_of(text)), set(_DIGITS.findall(text))
    if not is_shown(product.name, shown):
        body.insert(0, _block("h1", product.name))
    if product.price and not numbers.issuperset(_significant(product.price)):
        body.append(_block("p", product.price))
    if not is_shown(product.description, shown):
        for line in product.description.split("\n"):
            body.append(_block("p", line))


def is_shown(text: str, shown: set[str]) -> bool:
    """Whether most words of the text are among these."""
    words = words_of(text)
    return sum([word in shown for word in words]) >= _MOST * len(words)


def _is_product(value: dict[str, Any]) -> bool:
    kinds = value.get("@type")
    return any(kind in _TYPES for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str))


def _price(offers: Any) -> str:
    """The price with its currency, from the first offer that has one."""
    for offer in (offers if isinstance(offers, list) else [offers])[:_MAX_VISITED]:
        if not isinstance(offer, dict):
            continue
        given = offer.get("price", offer.get("lowPrice"))
        if isinstance(given, str | int | float) and not isinstance(given, bool) and _DIGITS.search(str(given)):
            return f"{_text(offer.get('priceCurrency'), 10)} {_text(given, 40)}".strip()
    return ""


def _significant(price: str) -> list[str]:
    """The digits that a page shows in any case: `1299.00` may be written as `1.299 €`."""
    whole = _DIGITS.search(price)
    digits = whole[0] if whole else ""
    return [digits] if len(digits) <= 3 else [digits[-3:]]


def lines_of(value: Any) -> str:
    """A text of JSON-LD in lines. Shops write HTML into descriptions."""
    text = storable(value) if isinstance(value, str) else ""
    if "<" in text or "&" in text:
        html = defused(text[:_MAX_DESCRIPTION].encode())
        text = to_text(parse(html, encoding="utf-8", positions=False).remove("script, style"))
    lines = (" ".join(line.split()) for line in text[:_MAX_DESCRIPTION].split("\n"))
    return "\n".join(line for line in lines if line)


def _text(value: Any, longest: int) -> str:
    return storable(" ".join(str(value).split())[:longest]) if isinstance(value, str | int | float) else ""


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _block(tag: str, text: str) -> Element:
    block = Element(tag)
    block.append(Text(text))
    return block

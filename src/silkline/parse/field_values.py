"""Converts the text of a field into a value with a type: numbers, prices, dates, URLs and booleans.

Pure, and linear in the length of the text, of which only the beginning is looked at. A text that does not convert is a
`Problem` with a word for programs, never an exception.
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import date as date_of
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from silkline.model.url import canonical
from silkline.parse.currencies import currency_in
from silkline.parse.month_names import MONTHS

LONGEST: Final = 200
"""Characters of a text that is converted. A longer text is no number, date or boolean."""

_WHOLE_DIGITS: Final = 15  # larger whole numbers do not fit into the number of JSON and of Parquet
_NUMBER: Final = re.compile(
    r"(?<![\w.,])[-+\u2212]?[.,]?\d(?:[\d.,'\u2019\u066b\u066c]|[ \u00a0\u202f\u2009](?=\d{3}))*"
)
_SCIENTIFIC: Final = re.compile(r"[-+]?\d+(?:\.\d+)?[eE][-+]?\d{1,3}")
_GROUPING: Final = re.compile(r"[ '\u00a0\u202f\u2009\u2019]")
_MAGNITUDE: Final = re.compile(r"\s?(?:[kKmMbB]|[mM]io|[mM]rd|mln|bn|million|billion|thousand)\b|[eE][-+]?\d")
_GROUPS: Final = re.compile(r"\d{1,3}(?:\d{3})*")
_ISO: Final = re.compile(
    r"(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\s?(?:Z|[+-]\d\d:?\d\d(?!\d))?)?(?!\d)"
)
_SLASHED: Final = re.compile(r"(?<!\d)(\d{4})[/.](\d{1,2})[/.](\d{1,2})(?!\d)")
_NUMERIC: Final = re.compile(r"(?<!\d)(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?!\d)")
_DAY_FIRST: Final = re.compile(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|\.|º)?\s+(?:de\s+)?([^\W\d_]{3,12})\.?,?\s+(?:de\s+)?(\d{4})(?!\d)"
)
_MONTH_FIRST: Final = re.compile(r"([^\W\d_]{3,12})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?!\d)")
_TIME: Final = re.compile(r"(?<![\d:])(\d{1,2}):(\d\d)(?::(\d\d))?(?!\d)\s*([aApP]\.?[mM]\b)?")

_TRUE: Final = frozenset(
    {
        *("true", "yes", "y", "on", "1", "ja", "oui", "si", "sí", "sim", "available", "lieferbar", "verfügbar"),
        *("disponible", "disponibile", "\u2713", "\u2714"),
    }
)
_FALSE: Final = frozenset(
    {
        *("false", "no", "n", "off", "0", "nein", "non", "unavailable", "ausverkauft", "épuisé", "agotado", "esaurito"),
        *("\u2717", "\u2718"),
    }
)
_NO_STOCK: Final = (
    *("out of stock", "out-of-stock", "not in stock", "no stock", "sold out", "not available", "unavailable"),
    *("nicht lieferbar", "nicht verfügbar", "nicht auf lager", "ausverkauft", "rupture", "indisponible", "épuisé"),
    *("agotado", "sin existencias", "no disponible", "non disponibile", "esaurito", "niet op voorraad", "esgotado"),
)
_STOCK: Final = (
    *("in stock", "in-stock", "available", "auf lager", "vorrätig", "lieferbar", "verfügbar", "en stock", "disponible"),
    *("disponibile", "op voorraad", "em estoque", "left in stock"),
)
_OF_SCHEMA: Final = {
    **dict.fromkeys(("instock", "limitedavailability", "instoreonly", "onlineonly"), True),
    **dict.fromkeys(("outofstock", "soldout", "discontinued", "preorder", "presale", "backorder"), False),
}
_SCHEMA: Final = re.compile(r"(?:https?://)?(?:www\.)?schema\.org/(\w{1,40})/?")


class Problem(NamedTuple):
    """Why a text has no value of its type: `not_a_number`, `several_numbers`, `not_a_date`, `ambiguous_date`,
    `not_a_url`, `not_a_boolean`."""

    error: str


class Price(NamedTuple):
    amount: int | float
    currency: str | None


def converted(text: str, kind: str, base: str) -> Any:
    """The value of a text, or a `Problem`."""
    match kind:
        case "number":
            return number(text)
        case "price":
            return price(text)
        case "date":
            return date(text)
        case "url":
            return canonical(text.strip(), base=base) or Problem("not_a_url")
        case "boolean":
            return boolean(text)
    return text


def number(text: str) -> int | float | Problem:
    """`1,234.56`, `1.234,56`, `1 234,5`, `12 %`. One number only: "3 of 5" is a problem."""
    return _number(text, money=False)


def price(text: str) -> Price | Problem:
    """A number and the currency beside it, if there is one: `1.234,56 €`, `$1,234.56`, `JPY 1,200`."""
    amount = _number(text, money=True)
    return amount if isinstance(amount, Problem) else Price(amount, currency_in(text[:LONGEST]))


def date(text: str) -> str | Problem:
    """The date in ISO 8601, with the time and the zone if the text has them."""
    if len(text) > LONGEST:
        return Problem("not_a_date")
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    try:
        return _date(text)
    except (ValueError, OverflowError):
        return Problem("not_a_date")


def boolean(text: str) -> bool | Problem:
    """Words for yes and no, and for in stock and out of stock, in some languages; availabilities of schema.org."""
    if len(text) > LONGEST:
        return Problem("not_a_boolean")
    words = " ".join(text.split()).casefold().strip(" .!:")
    schema = _SCHEMA.fullmatch(words)
    known = _OF_SCHEMA.get(schema[1] if schema else words)
    if known is not None:
        return known
    if words in _TRUE or words in _FALSE:
        return words in _TRUE
    if any(phrase in words for phrase in _NO_STOCK):
        return False
    return True if any(phrase in words for phrase in _STOCK) else Problem("not_a_boolean")


def _number(text: str, *, money: bool) -> int | float | Problem:
    if len(text) > LONGEST:
        return Problem("not_a_number")
    text = unicodedata.normalize("NFKC", text).strip()
    if _SCIENTIFIC.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else Problem("not_a_number")
    found = list(_NUMBER.finditer(text)) or list(_NUMBER.finditer(re.sub(r"(?<=[^\W\d_])(?=\d)", " ", text)))
    if len(found) != 1:
        return Problem("several_numbers" if found else "not_a_number")
    if _MAGNITUDE.match(found[0].string, found[0].end()):
        return Problem("not_a_number")
    amount = _value(found[0][0], money=money)
    return Problem("not_a_number") if amount is None else amount


def _value(written: str, *, money: bool) -> int | float | None:
    """The value of digits with separators; None if the separators make no sense."""
    sign = -1 if written[0] in "-\u2212" else 1
    digits = _GROUPING.sub("", written.lstrip("-+\u2212")).replace("\u066b", ".").replace("\u066c", ",").rstrip(".,")
    whole, mark, decimals = _split(digits, money=money)
    if mark and not decimals.isdecimal():
        return None
    parts = re.split(r"[.,]", whole)
    if len(parts) > 1 and not _is_grouped(parts):
        return None
    plain = "".join(parts)
    if plain and not plain.isdecimal():
        return None
    if mark or len(plain) > _WHOLE_DIGITS:
        return sign * float(f"{plain or '0'}.{decimals or '0'}")
    return sign * int(plain)


def _split(digits: str, *, money: bool) -> tuple[str, str, str]:
    """The whole part, the decimal mark and the decimals. Which mark is the decimal one depends on both of them."""
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return digits, "", ""
    mark, whole, decimals = digits[last], digits[:last], digits[last + 1 :]
    if mark in whole:
        return digits, "", ""  # it is there twice, so it separates thousands
    if "." in whole or "," in whole:
        return whole, mark, decimals
    thousands = len(decimals) == 3 and 1 <= len(whole) <= 3 and whole != "0" and (mark == "," or money)
    return (digits, "", "") if thousands else (whole, mark, decimals)


def _is_grouped(parts: list[str]) -> bool:
    """Groups of three digits; before the last group also of two, as in India."""
    first, *middle, last = parts
    return 1 <= len(first) <= 3 and len(last) == 3 and all(len(part) in (2, 3) for part in middle)


def _date(text: str) -> str | Problem:
    if found := _ISO.search(text):
        iso = found[0].replace(",", ".").replace(" ", "T", 1).replace(" ", "")
        return iso[:10] if len(iso) == 10 and datetime.fromisoformat(iso) else datetime.fromisoformat(iso).isoformat()
    if re.fullmatch(r"\d{8}", text):
        return date_of(int(text[:4]), int(text[4:6]), int(text[6:])).isoformat()
    if re.match(r"(?:[A-Za-z]{3}, )?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d", text):
        return parsedate_to_datetime(text).isoformat()
    if found := _SLASHED.search(text):
        return _with_time(text, found, int(found[1]), int(found[2]), int(found[3]))
    if found := _NUMERIC.search(text):
        return _numeric(text, found)
    for pattern, day, month in ((_DAY_FIRST, 1, 2), (_MONTH_FIRST, 2, 1)):
        for found in pattern.finditer(text):
            number = MONTHS.get(found[month].casefold())
            if number:
                return _with_time(text, found, int(found[3]), number, int(found[day]))
    return Problem("not_a_date")


def _numeric(text: str, found: re.Match[str]) -> str | Problem:
    """`31.12.2024` is day first. With other marks only the numbers can tell, and not always."""
    first, mark, second, year = int(found[1]), found[2], int(found[3]), int(found[4])
    if mark == "." or first > 12:
        return _with_time(text, found, year, second, first)
    if second > 12 or first == second:
        return _with_time(text, found, year, first, second)
    return Problem("ambiguous_date")


def _with_time(text: str, found: re.Match[str], year: int, month: int, day: int) -> str:
    time = _TIME.search(text, found.end()) or _TIME.search(text[: found.start()])
    if time is None:
        return date_of(year, month, day).isoformat()
    hour = int(time[1])
    if time[4]:
        hour = hour % 12 + (12 if time[4][0] in "pP" else 0)
    return datetime(year, month, day, hour, int(time[2]), int(time[3] or 0)).isoformat()

"""The currency in a text, as a code of ISO 4217. Signs that several currencies share have none, except `$` and `¥`."""

from __future__ import annotations

import re
from typing import Final

CODES: Final = frozenset(
    {
        *("AED", "ARS", "AUD", "BDT", "BGN", "BHD", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP"),
        *("EUR", "GBP", "GHS", "HKD", "HUF", "IDR", "ILS", "INR", "ISK", "JOD", "JPY", "KES", "KRW", "KWD", "KZT"),
        *("LKR", "MAD", "MXN", "MYR", "NGN", "NOK", "NZD", "OMR", "PEN", "PHP", "PKR", "PLN", "QAR", "RON", "RSD"),
        *("RUB", "SAR", "SEK", "SGD", "THB", "TND", "TRY", "TWD", "UAH", "USD", "UYU", "VND", "ZAR"),
    }
)
# Longer signs come first, because `$` is part of many.
_SIGNS: Final[dict[str, str]] = {
    **{"US$": "USD", "CA$": "CAD", "AU$": "AUD", "NZ$": "NZD", "HK$": "HKD", "NT$": "TWD", "MX$": "MXN", "R$": "BRL"},
    **{"C$": "CAD", "A$": "AUD", "S$": "SGD", "\u20ac": "EUR", "\u00a3": "GBP", "\u20b9": "INR", "\u20bd": "RUB"},
    **{"\u20a9": "KRW", "\u20ba": "TRY", "\u20ab": "VND", "\u20b4": "UAH", "\u20aa": "ILS", "\u0e3f": "THB"},
    **{"\u20b1": "PHP", "\u20b8": "KZT", "\u20a6": "NGN", "\u5143": "CNY", "\u5186": "JPY"},
    **{"\u00a5": "JPY", "\uffe5": "JPY", "$": "USD"},
}
_WORDS: Final[dict[str, str]] = {
    **{"z\u0142": "PLN", "k\u010d": "CZK", "ft": "HUF", "\u043b\u0432": "BGN", "lei": "RON", "fr": "CHF", "rm": "MYR"},
    **{"rp": "IDR", "rs": "INR", "tl": "TRY", "euro": "EUR", "euros": "EUR", "dollar": "USD", "dollars": "USD"},
}
_WORD: Final = re.compile(r"[^\W\d_]{2,8}")


def currency_in(text: str) -> str | None:
    words: list[str] = _WORD.findall(text)
    for word in words:
        if word in CODES:
            return word
    for sign, code in _SIGNS.items():
        if sign in text:
            return code
    return next((_WORDS[word.casefold()] for word in words if word.casefold() in _WORDS), None)


def currency_code(value: object) -> str | None:
    """A code that a page gives beside a price, such as `priceCurrency`."""
    code = value.strip().upper() if isinstance(value, str) else ""
    if code in CODES or re.fullmatch(r"[A-Z]{3}", code):
        return code
    return currency_in(value[:20]) if isinstance(value, str) else None

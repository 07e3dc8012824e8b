"""Completes a typed URL, and suggests a correction if its scheme is mistyped."""

from __future__ import annotations

import difflib
import re

from silkline.errors import UsageError
from silkline.model.bare_host import is_host
from silkline.model.user_info import has_user_info, without_user_info

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_PORT = re.compile(r":\d{1,5}(?:[/?#]|$)")
LOCAL = re.compile(r"localhost\b|[\d.]+(:\d+)?(/|$)|\[", re.IGNORECASE)
_MISTYPED = re.compile(r"(https?)(?::{1,2}/?|//|:///+|;//|/)(?![/:])(?=[\w\[])", re.IGNORECASE)


def with_scheme(address: str) -> str:
    """Add the scheme to a typed URL: https for `example.com`, http for `localhost:8000` and IP addresses."""
    text = address.strip()
    if re.match(r"https?://", text, re.IGNORECASE):
        return text
    if not text:
        raise UsageError("the URL is empty; write one such as https://example.com/")
    wrong = wrong_scheme(text)
    if wrong:
        raise UsageError(wrong)
    if "@" not in text and not is_host(text):
        raise UsageError(f"{text[:80]!r} is not a web address; if it is the name of a host, write http://{text[:80]}/")
    return f"{'http' if LOCAL.match(text) else 'https'}://{text}"


def wrong_scheme(text: str) -> str:
    """The error for a text with a mistyped or unsupported scheme; empty for a text without a scheme."""
    shown = without_user_info(text)[:80]
    slip = _MISTYPED.match(text)
    if slip and not re.match(r"https?://\w", text, re.IGNORECASE):
        return f"{shown!r} is not a web address{_suggestion(slip[1], text[slip.end() :])}"
    scheme = _SCHEME.match(text)
    if not scheme or _PORT.match(text, scheme.end() - 1):
        return ""
    rest = text[scheme.end() :].lstrip("/")
    if "://" not in text and has_user_info(f"http://{text}"):
        return ""  # user:password@host, which gets another error
    close = difflib.get_close_matches(scheme[1].lower(), ("https", "http"), n=1, cutoff=0.7)
    if close:
        return f"{shown!r} is not a web address{_suggestion(close[0], rest)}"
    return f"{shown!r} is not a web address: only http:// and https:// are fetched"


def _suggestion(scheme: str, rest: str) -> str:
    right = without_user_info(f"{scheme.lower()}://{rest}")[:80]
    return f"; did you mean {right}?"

"""A URL as people type it, made whole; with a suggestion where its scheme is mistyped."""

from __future__ import annotations

import difflib
import re

from silkline.errors import UsageError
from silkline.model.user_info import has_user_info, without_user_info

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_PORT = re.compile(r":\d{1,5}(?:[/?#]|$)")
# A word without a dot is taken for a host only if it is localhost, or has a port.
_NAME = r"[^\s/?#:@\[\]]"
_HOST = re.compile(
    rf"(localhost|{_NAME}+\.{_NAME}*|{_NAME}+(?=:\d)|\[[0-9a-f:.]+\])(:\d{{1,5}})?([/?#]|$)", re.IGNORECASE
)
LOCAL = re.compile(r"localhost\b|[\d.]+(:\d+)?(/|$)|\[", re.IGNORECASE)
_MISTYPED = re.compile(r"(https?)(?::{1,2}/?|//|:///+|;//|/)(?![/:])(?=[\w\[])", re.IGNORECASE)


def with_scheme(address: str) -> str:
    """A URL as people type it: `example.com` is on https, `localhost:8000` and bare addresses on http."""
    text = address.strip()
    if re.match(r"https?://", text, re.IGNORECASE):
        return text
    if not text:
        raise UsageError("the URL is empty; write one such as https://example.com/")
    wrong = wrong_scheme(text)
    if wrong:
        raise UsageError(wrong)
    if "@" not in text and not _HOST.match(text):
        raise UsageError(f"{text[:80]!r} is not a web address; if it is the name of a host, write http://{text[:80]}/")
    return f"{'http' if LOCAL.match(text) else 'https'}://{text}"


def wrong_scheme(text: str) -> str:
    """What to say of a text that has a scheme which is not fetched, or is mistyped; empty where it has none."""
    shown = without_user_info(text)[:80]
    slip = _MISTYPED.match(text)
    if slip and not re.match(r"https?://\w", text, re.IGNORECASE):
        return f"{shown!r} is not a web address{_suggestion(slip[1], text[slip.end() :])}"
    scheme = _SCHEME.match(text)
    if not scheme or _PORT.match(text, scheme.end() - 1):
        return ""
    rest = text[scheme.end() :].lstrip("/")
    if "://" not in text and has_user_info(f"http://{text}"):
        return ""  # user:password@host, which is refused with a sentence of its own
    close = difflib.get_close_matches(scheme[1].lower(), ("https", "http"), n=1, cutoff=0.7)
    if close:
        return f"{shown!r} is not a web address{_suggestion(close[0], rest)}"
    return f"{shown!r} is not a web address: only http:// and https:// are fetched"


def _suggestion(scheme: str, rest: str) -> str:
    right = without_user_info(f"{scheme.lower()}://{rest}")[:80]
    return f"; did you mean {right}?"

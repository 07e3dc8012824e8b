"""Text and JSON that both databases take: PostgreSQL refuses NUL, and nothing takes half a surrogate pair."""

from __future__ import annotations

import json
from typing import Any, overload

from silkline.errors import UsageError


@overload
def clean(text: str) -> str: ...
@overload
def clean(text: None) -> None: ...
def clean(text: str | None) -> str | None:
    """The text with what cannot be stored replaced."""
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    return text.replace("\x00", "\ufffd").encode(errors="replace").decode()


def to_json(value: Any) -> str:
    """A value as JSON text that can be stored."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise UsageError(f"this is not JSON: {error}") from error
    if "\\u0000" in text:
        text = json.dumps(_without_nul(value), ensure_ascii=False, separators=(",", ":"))
    return clean(text)


def clean_json(text: str) -> str:
    """JSON text from elsewhere, made storable. Escapes are rare, so most text passes with two searches."""
    if "\\u" in text:
        return to_json(json.loads(text))
    return clean(text)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nul(each) for each in value]
    return value

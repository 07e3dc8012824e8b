"""Reads the JSON-LD blocks of a page."""

from __future__ import annotations

import json
from typing import Any, Final

from turbohtml import Document

_MAX_CHARACTERS: Final = 500_000
_ANY_DEPTH: Final = 1_000_000  # Python itself allows less


def json_ld_of(document: Document, holding: tuple[str, ...] = ("",), deepest: int = _ANY_DEPTH) -> list[Any]:
    """Every block that is valid JSON, contains one of these texts and is not nested deeper, up to a limit in size."""
    left, found = _MAX_CHARACTERS, []
    for script in document.select('script[type*="ld+json" i]'):
        source = script.text
        left -= len(source)
        if left < 0:
            break
        if not any(text in source for text in holding):
            continue
        try:
            found.append(_storable(json.loads(source, strict=False), deepest))
        except (ValueError, RecursionError):
            continue  # Broken blocks are common, and we cannot repair them.
    return found


def _storable(value: Any, deepest: int) -> Any:
    """The value without NUL and half surrogate pairs, which databases refuse. `ValueError`: too deep."""
    if isinstance(value, str):
        value = value.replace("\x00", "")
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if not isinstance(value, dict | list):
        return value
    if deepest == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {_storable(key, deepest): _storable(item, deepest - 1) for key, item in value.items()}
    return [_storable(item, deepest - 1) for item in value]

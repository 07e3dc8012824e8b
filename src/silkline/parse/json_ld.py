"""Reads the JSON-LD blocks of a page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from turbohtml import Document, Element

_MAX_CHARACTERS: Final = 500_000
_ANY_DEPTH: Final = 1_000_000  # Python itself allows less
_decode = msgspec.json.Decoder().decode


def json_ld_of(document: Document, deepest: int = _ANY_DEPTH) -> list[Any]:
    """Every block that is valid JSON and is not nested deeper, up to a limit in size. All texts can be stored."""
    found = []
    for source in _sources(document.iter_elements("script")):
        try:
            found.append(_storable(json.loads(source, strict=False), deepest))
        except (ValueError, RecursionError):
            continue  # Broken blocks are common, and we cannot repair them.
    return found


def json_ld_holding(scripts: Iterable[Element], *texts: str) -> list[list[Any]]:
    """For each text, the blocks in these scripts that contain it. What is used of them must be made `storable`."""
    found: list[list[Any]] = [[] for _ in texts]
    for source in _sources(scripts):
        holding = [blocks for text, blocks in zip(texts, found, strict=True) if text in source]
        if holding:
            try:
                block = _loaded(source)
            except (ValueError, RecursionError):
                continue
            for blocks in holding:
                blocks.append(block)
    return found


def storable(text: str) -> str:
    """The text without NUL and half surrogate pairs, which databases refuse."""
    text = text.replace("\x00", "")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _sources(scripts: Iterable[Element]) -> Iterator[str]:
    left = _MAX_CHARACTERS
    for script in scripts:
        kind = script.attr("type")
        if kind is None or "ld+json" not in kind.lower() or script.tag != "script":
            continue
        source = script.text
        left -= len(source)
        if left < 0:
            break
        yield source


def _loaded(source: str) -> Any:
    try:
        return _decode(source)
    except (msgspec.DecodeError, UnicodeEncodeError):  # it is stricter, and several times as fast
        return json.loads(source, strict=False)


def _storable(value: Any, deepest: int) -> Any:
    """The value with texts that can be stored. `ValueError`: too deep."""
    if isinstance(value, str):
        return storable(value)
    if not isinstance(value, dict | list):
        return value
    if deepest == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {_storable(key, deepest): _storable(item, deepest - 1) for key, item in value.items()}
    return [_storable(item, deepest - 1) for item in value]

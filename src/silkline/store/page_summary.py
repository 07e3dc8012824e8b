"""Reads the title, the size and the time of a page from the JSON of its result, without decoding the rest."""

from __future__ import annotations

from typing import Any

import msgspec


class TitledData(msgspec.Struct):
    """The part of `data` that lists show."""

    title: Any = None


class MeasuredMetadata(msgspec.Struct):
    """The part of `metadata` that lists show."""

    bytes: Any = None
    seconds: Any = None


_titled = msgspec.json.Decoder(TitledData)
_measured = msgspec.json.Decoder(MeasuredMetadata)


def facts_of(data: str, metadata: str) -> tuple[Any, Any, Any]:
    """Title, bytes and seconds of a result, with the types that the job stored. None: not known."""
    try:
        title, measured = _titled.decode(data).title, _measured.decode(metadata)
    except (ValueError, RecursionError):
        return None, None, None
    return title, measured.bytes, measured.seconds

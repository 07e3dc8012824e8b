"""The short form of a long payload. It is stored with the job: lists and events would read 16 MB for each job."""

from __future__ import annotations

from typing import Any, Final

from silkline.store.text import to_json

WHOLE_PAYLOAD: Final = 32_768  # characters; a payload up to this size is its own short form
LONGEST_FIELD: Final = 8_192
# What is needed to hide secrets stays, and `fields`, which are limited. The migration 0019 has the same names.
KEPT: Final = frozenset({"headers", "cookies", "proxy", "fields"})


def payload_columns(payload: dict[str, Any]) -> tuple[str, str | None]:
    """The payload as JSON text, and its short form: long fields are null. None: the payload is short itself."""
    text = to_json(payload)
    if len(text) <= WHOLE_PAYLOAD:
        return text, None
    return text, to_json({name: value if _stays(name, value) else None for name, value in payload.items()})


def _stays(name: str, value: Any) -> bool:
    return name in KEPT or len(to_json(value)) <= LONGEST_FIELD

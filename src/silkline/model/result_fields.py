"""The fields in `data` and `metadata` of a result that exports and web pages use, with their types.

Our own kinds use these types. External workers and plug-ins may store any value under other names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

TEXT: Final = (str,)
NUMBER: Final = (int, float)
DATA: Final[dict[str, tuple[type, ...]]] = dict.fromkeys(
    ("title", "description", "language", "lastmod", "markdown", "text", "transcript", "html"), TEXT
)
METADATA: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("error", "detail", "content", "content_type", "charset", "render_failed"), TEXT),
    "http_status": (int,),
    "bytes": (int,),
    "seconds": NUMBER,
    "rendered": (bool,),
    "retryable": (bool,),
    "redirected_from": (list,),
}
LARGEST: Final = 2**63
"""Tables and charts have no place for larger numbers, and no page has them."""
WORDS: Final = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list of texts"}


def is_right(name: str, value: Any, types: Mapping[str, tuple[type, ...]]) -> bool:
    """Whether a value is valid for a field. None is always valid, and so is any value of an unknown field."""
    wanted = types.get(name)
    if wanted is None or value is None:
        return True
    if isinstance(value, bool) and bool not in wanted:
        return False
    if not isinstance(value, wanted) or (isinstance(value, int | float) and not abs(value) < LARGEST):
        return False
    return not isinstance(value, list) or all(isinstance(each, str) for each in value)


def number_in(metadata: Mapping[str, Any], name: str) -> float | None:
    """A number of `metadata`, or None if there is another value under this name."""
    value = metadata.get(name)
    return value if isinstance(value, int | float) and is_right(name, value, METADATA) else None


def wrong_fields(fields: Mapping[str, Any], types: Mapping[str, tuple[type, ...]]) -> list[str]:
    """The errors, one sentence each."""
    return [
        f"{name} must be {WORDS[types[name][-1]]}" for name, value in fields.items() if not is_right(name, value, types)
    ]


def mended(fields: dict[str, Any], types: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """The fields with the right types: convert to text where text is expected, drop what cannot be converted."""
    wrong = [name for name, value in fields.items() if not is_right(name, value, types)]
    if not wrong:
        return fields
    right = {name: value for name, value in fields.items() if name not in wrong}
    texts = {name: json.dumps(fields[name], ensure_ascii=False) for name in wrong if types[name] == TEXT}
    return {**right, **texts}
